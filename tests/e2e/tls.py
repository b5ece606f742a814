"""Certificates for tests, and doors that stand between a client and a server of TLS: one that answers for the server, one that
passes bytes on and can be cut."""
import os
import socket
import ssl
import subprocess
import tempfile
import threading

import stintd

STINT = os.path.abspath(os.environ.get("STINT", "build/stint"))


class Certificates:
    """What `stint tls init` makes, in a directory of its own."""

    def __init__(self, *hosts):
        self.folder = tempfile.TemporaryDirectory(prefix="stint-tls-")
        self.make(*hosts)

    def make(self, *hosts):
        subprocess.run([STINT, "tls", "init", "--dir", self.folder.name, "-q", *hosts], check=True, capture_output=True,
                       env=stintd.environment())

    def path(self, name):
        return os.path.join(self.folder.name, name)

    @property
    def ca(self):
        return self.path("ca.crt")

    def flags(self):
        return ["--set", "tls.cert=" + self.path("server.crt"), "--set", "tls.key=" + self.path("server.key"), "--set", "tls.ca=" + self.ca]

    def close(self):
        self.folder.cleanup()


def foreign(folder, name="localhost", when=None):
    """A certificate of nobody's authority, for that host and 127.0.0.1; `when` is the date on which it was made, for two days."""
    cert, key = os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key")
    subprocess.run([*(["faketime", when] if when else []), "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=x", "-addext",
                    "subjectAltName=DNS:%s%s" % (name, "" if name.endswith(".example") else ",IP:127.0.0.1"),
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    os.chmod(key, 0o600)
    return cert, key


class Stranger:
    """Answers TLS with a certificate of its own, and keeps whatever a client then says."""

    def __init__(self, cert, key):
        self.heard, self.failed = b"", threading.Event()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                raw, _ = self.door.accept()
            except OSError:
                return
            try:
                with self.context.wrap_socket(raw, server_side=True) as peer:
                    while block := peer.recv(65536):
                        self.heard += block
            except OSError:
                self.failed.set()

    def close(self):
        self.door.shutdown(socket.SHUT_RDWR)
        self.door.close()
        self.thread.join(10)


class Cutter:
    """Passes the bytes of each connection on to `target`; cut() ends all that are open, amid whatever they say."""

    def __init__(self, target, address=("127.0.0.1", 0)):
        self.target, self.open, self.count = target, set(), 0
        self.lock = threading.Lock()
        self.door = socket.create_server(address)
        self.port = self.door.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target)
            except OSError:
                near.close()
                continue
            with self.lock:
                self.count += 1
                self.open |= {near, far}
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()

    def carry(self, source, sink):
        try:
            while block := source.recv(65536):
                sink.sendall(block)
        except OSError:
            pass
        self.end(source, sink)

    def end(self, *ends):
        for end in ends:
            with self.lock:
                self.open.discard(end)
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        with self.lock:
            ends = list(self.open)
        self.end(*ends)

    def close(self):
        self.door.shutdown(socket.SHUT_RDWR)
        self.door.close()
        self.cut()
        self.thread.join(10)
