"""Builds the wheel and the source archive (PEP 517) with Python's own library, so that packing needs no index. The same sources give
the same bytes."""
import base64
import hashlib
import io
import os
import tarfile
import tomllib
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def _read(*names):
    with open(os.path.join(HERE, *names), "rb") as file:
        return file.read()


def _metadata():
    project = tomllib.loads(_read("pyproject.toml").decode())["project"]
    head = ["Metadata-Version: 2.1", "Name: " + project["name"], "Version: " + project["version"], "Summary: " + project["description"],
            "Requires-Python: " + project["requires-python"], "Description-Content-Type: text/markdown", ""]
    return project["name"].replace("-", "_"), project["version"], "\n".join(head).encode() + b"\n" + _read("README.md")


def _modules():
    return sorted("stint/" + name for name in os.listdir(os.path.join(HERE, "stint")) if name.endswith((".py", ".typed")))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, version, metadata = _metadata()
    info = "%s-%s.dist-info" % (name, version)
    files = {module: _read(module) for module in _modules()}
    files[info + "/METADATA"] = metadata
    files[info + "/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: stint\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = ["%s,sha256=%s,%d" % (path, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), len(data))
            for path, data in files.items()]
    files[info + "/RECORD"] = "\n".join([*rows, info + "/RECORD,,", ""]).encode()
    wheel = "%s-%s-py3-none-any.whl" % (name, version)
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    name, version, metadata = _metadata()
    files = {path: _read(path) for path in [*_modules(), "pack.py", "pyproject.toml", "README.md"]} | {"PKG-INFO": metadata}
    archive = "%s-%s.tar.gz" % (name, version)
    with tarfile.open(os.path.join(sdist_directory, archive), "w:gz") as tar:
        for path, data in files.items():
            entry = tarfile.TarInfo("%s-%s/%s" % (name, version, path))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return archive
