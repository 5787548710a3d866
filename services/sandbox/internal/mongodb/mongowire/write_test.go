package mongowire_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/mongowire"
)

func TestWrite_Replies(t *testing.T) {
	t.Parallel()
	doc := bson.Raw{5, 0, 0, 0, 0}
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"an OP_MSG": {
			mongowire.AppendReply(nil, 3, 7, mongowire.MoreToCome, doc),
			"1a0000000300000007000000dd070000" + "02000000" + "00" + "0500000000",
		},
		"an OP_REPLY": {
			mongowire.AppendLegacyReply(nil, 3, 7, doc),
			"29000000030000000700000001000000" + "08000000" + "0000000000000000" + "00000000" + "01000000" + "0500000000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := hex.EncodeToString(c.got); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// FuzzReadRequest looks for bytes that panic, and for requests that a second
// reading of their parts would not give again.
func FuzzReadRequest(f *testing.F) {
	ping := document(f, "ping", int32(1), "$db", "admin", "nested", document(f, "a", bson.A{int32(1), "x"}))
	f.Add(frame(mongowire.OpMsg, flags(0), body(ping)))
	f.Add(frame(mongowire.OpMsg, flags(0), body(ping), sequence("documents", ping, ping)))
	f.Add(withChecksum(frame(mongowire.OpMsg, flags(mongowire.ChecksumPresent), body(ping))))
	f.Add(query("admin.$cmd", ping))
	f.Add(header(mongowire.MaxMessageBytes, mongowire.OpMsg))
	f.Fuzz(func(t *testing.T, message []byte) {
		req, err := mongowire.ReadRequest(bytes.NewReader(message))
		if err != nil {
			return
		}
		parts := [][]byte{flags(req.Flags &^ mongowire.ChecksumPresent), body(req.Body)}
		for _, s := range req.Sequences {
			docs := make([][]byte, len(s.Documents))
			for i, doc := range s.Documents {
				docs[i] = doc
			}
			parts = append(parts, sequence(s.Name, docs...))
		}
		again, err := mongowire.ReadRequest(bytes.NewReader(frame(mongowire.OpMsg, parts...)))
		if err != nil {
			t.Fatalf("written again: %v", err)
		}
		if !bytes.Equal(again.Body, req.Body) || len(again.Sequences) != len(req.Sequences) {
			t.Errorf("got %+v, want %+v", again, req)
		}
	})
}
