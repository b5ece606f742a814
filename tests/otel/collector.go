// A collector of OpenTelemetry, built from its own modules: the OTLP receiver as in production, and behind it a consumer that prints
// the name of each span. Its address is the first line; it ends when its input does. `./dev check` builds it where Go can fetch the modules.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer listener.Close()
	return listener.Addr().String()
}

func take(_ context.Context, traces ptrace.Traces) error {
	for i := 0; i < traces.ResourceSpans().Len(); i++ {
		scopes := traces.ResourceSpans().At(i).ScopeSpans()
		for j := 0; j < scopes.Len(); j++ {
			for k := 0; k < scopes.At(j).Spans().Len(); k++ {
				span := scopes.At(j).Spans().At(k)
				fmt.Printf("%s %s %s %s\n", span.TraceID(), span.SpanID(), span.Status().Code(), span.Name())
			}
		}
	}
	return nil
}

func main() {
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	address := freeAddress()
	must(confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}).Unmarshal(config))
	sink, err := consumer.NewTraces(take)
	must(err)
	receiver, err := factory.CreateTraces(context.Background(), receivertest.NewNopSettings(factory.Type()), config, sink)
	must(err)
	must(receiver.Start(context.Background(), componenttest.NewNopHost()))
	fmt.Println(address)
	io.Copy(io.Discard, os.Stdin)
	must(receiver.Shutdown(context.Background()))
}
