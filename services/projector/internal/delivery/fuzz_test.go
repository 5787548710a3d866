package delivery_test

import (
	"testing"

	"changerelay/pkg/contract"
	"changerelay/services/projector/internal/projection"
	"changerelay/services/projector/internal/readmodel/readmodeltest"
	"changerelay/services/projector/internal/session"
)

// Whatever a message holds, it gets a verdict, and what is dead-lettered has a
// reason.
func FuzzApply(f *testing.F) {
	f.Add("id", "a", "Happened", "", []byte(`{"n":1}`), "1", "0000000000000000001", int64(1), true)
	f.Add("", "", "", "gzip", []byte{0x1f, 0x8b}, "2", "", int64(-1), false)
	f.Add("id", "a", "Happened", "", []byte(`{"$numberLong":"x"}`), "1", "x", int64(1), true)
	f.Fuzz(func(t *testing.T, id, aggregate, kind, encoding string, body []byte, version, sequence string, n int64, position bool) {
		m := contract.Message{
			ID: id, SessionID: aggregate, Subject: kind, ContentType: contract.ContentTypeJSON, ContentEncoding: encoding, Body: body,
			Properties: map[string]any{
				"cloudEvents_specversion": "1.0", "cloudEvents_contractversion": version, "cloudEvents_id": id, "cloudEvents_source": "/a/b",
				"cloudEvents_type": kind, "cloudEvents_subject": aggregate, "cloudEvents_operation": "insert",
				"cloudEvents_sequence": sequence, "cloudEvents_position": "6553f100000000001.82", "cloudEvents_aggregateversion": n, "cloudEvents_term": n,
			},
		}
		if position {
			e := readmodeltest.Event("a", 1)
			m.Properties["cloudEvents_position"] = string(e.Position)
		}
		store := readmodeltest.NewFake()
		latest := projection.Projections{projection.Latest{Collection: "latest"}}
		h := newHandler(latest, store)
		verdicts, err := h.Hold(aggregate).Apply(t.Context(), []session.Message{{Message: m}})
		if err != nil || len(verdicts) != 1 {
			t.Fatalf("got %v and %v, want one verdict", verdicts, err)
		}
		if v := verdicts[0]; v.DeadLetter && (v.Reason == "" || v.Description == "") {
			t.Errorf("dead-lettered without a reason: %+v", v)
		}
	})
}
