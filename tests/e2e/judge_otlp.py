"""Is a request of OTLP/HTTP in JSON what opentelemetry-proto has? It stands on standard input. Ids are hexadecimal in this JSON, where
the JSON of protobuf has base64; everything else is read strictly: no field that is not there, no wrong kind."""
import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

request = json.load(sys.stdin)
for resource in request["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
read = json_format.ParseDict(request, ExportTraceServiceRequest())
for resource in read.resource_spans:
    for scope in resource.scope_spans:
        for span in scope.spans:
            assert len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8), span
            assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
            print(span.name)
