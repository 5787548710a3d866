package contract

// The application properties of a sender's trace context. They have no prefix,
// because tracing libraries look for them under these names: W3C Trace Context
// for AMQP, and the Azure SDKs. The attribute traceparent is another thing: it
// says where the event came from, whichever way it takes (CloudEvents, extension
// Distributed Tracing).
const (
	propertyTraceParent = "traceparent"
	propertyTraceState  = "tracestate"
)

// TraceContext is a W3C trace context.
type TraceContext struct {
	// Parent is a traceparent; empty for none.
	Parent string
	// State is the tracestate that belongs to it; may be empty.
	State string
}

// SetTraceContext has the message name the span that sends it. A malformed
// parent is left out with its state, and so is a malformed state.
func (m *Message) SetTraceContext(c TraceContext) {
	if !validTraceParent(c.Parent) {
		return
	}
	m.Properties[propertyTraceParent] = c.Parent
	if validTraceState(c.State) {
		m.Properties[propertyTraceState] = c.State
	}
}

// TraceContext returns what a reader's span continues: the span that sent the
// message; of a sender that traces nothing, where the event came from. It is
// empty where neither is there and well formed.
func (m *Message) TraceContext() TraceContext {
	if parent, ok := m.Properties[propertyTraceParent].(string); ok && validTraceParent(parent) {
		state, _ := m.Properties[propertyTraceState].(string)
		if !validTraceState(state) {
			state = ""
		}
		return TraceContext{Parent: parent, State: state}
	}
	r := reader{properties: m.Properties}
	return TraceContext{Parent: r.traceParent()}
}

// validTraceState tells a tracestate that may travel. What stands in it is for
// tracing systems alone: W3C Trace Context section 3.3.
func validTraceState(s string) bool {
	const most = 512
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= most
}
