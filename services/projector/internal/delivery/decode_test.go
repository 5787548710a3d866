package delivery_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/delivery"
	"changerelay/services/projector/internal/session"
)

// broken is the second message of aggregate a, changed.
func broken(t *testing.T, change func(m *session.Message)) session.Message {
	t.Helper()
	m := message(t, "a", 2, "Happened", `{"n":2}`)
	change(&m)
	return m
}

func TestDeadLetter_AMessageOfNoAggregateIsDeadLettered(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		message      session.Message
		reason, says string
	}{
		{"a foreign message", session.Message{Message: contract.Message{ID: "x", SessionID: "a", Body: []byte("hello")}}, "ForeignMessage", "specversion: is missing"},
		{"no sequence", broken(t, func(m *session.Message) { delete(m.Properties, "cloudEvents_sequence") }), "InvalidMessage", "sequence: is missing"},
		{"a sequence that is no text", broken(t, func(m *session.Message) { m.Properties["cloudEvents_sequence"] = int64(2) }), "InvalidMessage", "sequence: is of type int64"},
		{"no id", broken(t, func(m *session.Message) { m.ID = ""; delete(m.Properties, "cloudEvents_id") }), "InvalidMessage", "id: is missing"},
		{"another id", broken(t, func(m *session.Message) { m.ID = "b-2" }), "InvalidMessage", "messageId: "},
		{"another session", broken(t, func(m *session.Message) { m.SessionID = "b" }), "InvalidMessage", "sessionId: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			messages := append(happened(t, "a", 1), tt.message)
			messages = append(messages, happened(t, "a", 3)...)
			verdicts, err := f.Hold("a").Apply(t.Context(), messages)
			if err != nil || len(verdicts) != 3 {
				t.Fatalf("got %v and %v, want three verdicts", verdicts, err)
			}
			v := verdicts[1]
			if !v.DeadLetter || v.Reason != tt.reason || !strings.Contains(v.Description, tt.says) || strings.Contains(v.Description, "\n") {
				t.Errorf("verdict: got %+v, want %s saying %q", v, tt.reason, tt.says)
			}
			if verdicts[0].DeadLetter || verdicts[2].DeadLetter {
				t.Errorf("the others: got %+v, want them completed", verdicts)
			}
			if got, want := f.fields(t, "orders", "a"), `{"events":2}{"last":3}{"seen":[1,3]}`; got != want {
				t.Errorf("document: got %s, want %s", got, want)
			}
		})
	}
}

// Whatever is wrong with a message whose place is known, nothing that comes
// after it is applied before it.
func TestHalt_AMessageThatCannotBeReadHaltsItsAggregate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(m *session.Message)
		says   string
	}{
		{"a missing position", func(m *session.Message) { delete(m.Properties, "cloudEvents_position") }, "position: is missing"},
		{"a body that is no JSON", func(m *session.Message) { m.Body = []byte(`{"n":`) }, "body: is not application/json"},
		{"a body that is no value of the format", func(m *session.Message) { m.Body = []byte(`{"$oid":"x"}`) }, "body: is not application/json"},
		{"a body that is no gzip", func(m *session.Message) { m.ContentEncoding = "gzip" }, "body: is not gzip"},
		{"an unknown encoding", func(m *session.Message) { m.ContentEncoding = "zstd" }, `contentEncoding: is "zstd"`},
		{"an unknown content type", func(m *session.Message) { m.ContentType = "application/cbor" }, `contentType: is "application/cbor"`},
		{"a newer contract", func(m *session.Message) { m.Properties["cloudEvents_contractversion"] = "2" }, "contractversion: "},
		{"an unknown operation", func(m *session.Message) { m.Properties["cloudEvents_operation"] = "merge" }, "operation: "},
		{"a later version without the copies of id and session", func(m *session.Message) {
			delete(m.Properties, "cloudEvents_id")
			delete(m.Properties, "cloudEvents_subject")
			m.Properties["cloudEvents_contractversion"] = "2"
		}, "contractversion: "},
	}
	for _, tt := range tests {
		for _, wait := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, waiting for versions %t", tt.name, wait), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var with []setting
					if wait {
						with = append(with, waiting(time.Second))
					}
					f := newFixture(t, with...)
					messages := append(happened(t, "a", 1), broken(t, tt.change))
					messages = append(messages, happened(t, "a", 3, 4)...)
					for i := range messages {
						messages[i].EnqueuedAt = time.Now()
					}
					verdicts, err := f.Hold("a").Apply(t.Context(), messages)
					if err != nil || !slices.Equal(verdicts, make([]session.Verdict, 4)) {
						t.Fatalf("got %v and %v, want all completed", verdicts, err)
					}
					if got := f.parked(t, "a"); !slices.Equal(got, []int64{2, 3, 4}) {
						t.Errorf("parked: got %v, want 2, 3 and 4", got)
					}
					mark, err := f.store.Mark(t.Context(), "a")
					if err != nil || mark == nil || !strings.Contains(mark.Reason, tt.says) || strings.Contains(mark.Reason, "\n") {
						t.Errorf("halt: got %+v and %v, want a reason saying %q", mark, err, tt.says)
					}
					if got, want := f.fields(t, "orders", "a"), `{"events":1}{"last":1}{"seen":[1]}`; got != want {
						t.Errorf("document: got %s, want %s", got, want)
					}
					// A redrive stops there again: nothing is done behind its back.
					done, err := delivery.Redrive(t.Context(), parse(t, counting), f.store, f.store, delivery.Gaps{}, "a")
					if err != nil || done.Lifted || done.Applied != 0 || done.FailedEventID != "a-2" {
						t.Errorf("redrive: got %+v and %v, want it to stop at the message", done, err)
					}
				})
			})
		}
	}
}
