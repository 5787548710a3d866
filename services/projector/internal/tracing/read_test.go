package tracing_test

import (
	"encoding/hex"
	"fmt"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

func hexOf(id []byte) string { return hex.EncodeToString(id) }

// traceParent is what a message of the span says.
func traceParent(s *tracepb.Span) string {
	return fmt.Sprintf("00-%x-%x-%02x", s.GetTraceId(), s.GetSpanId(), s.GetFlags()&0xff)
}

func attributesOf(s *tracepb.Span) map[string]string {
	found := map[string]string{}
	for _, a := range s.GetAttributes() {
		found[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return found
}
