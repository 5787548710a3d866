package crashpoint

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// opMsgOf is an OP_MSG with one body.
func opMsgOf(t *testing.T, body bson.D) []byte {
	t.Helper()
	raw, err := bson.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 16+4+1, 16+4+1+len(raw))
	message = append(message, raw...)
	binary.LittleEndian.PutUint32(message, uint32(len(message)))
	binary.LittleEndian.PutUint32(message[4:], 7)
	binary.LittleEndian.PutUint32(message[12:], opMsg)
	return message
}

func TestFrames_StepsAreToldByTheirFrames(t *testing.T) {
	t.Parallel()
	take := opMsgOf(t, bson.D{{Key: "findAndModify", Value: "leader_leases"}, {Key: "upsert", Value: true}})
	renew := opMsgOf(t, bson.D{{Key: "findAndModify", Value: "leader_leases"}})
	claim := opMsgOf(t, bson.D{{Key: "findAndModify", Value: "resume_tokens"}, {Key: "update", Value: bson.A{}}})
	read := opMsgOf(t, bson.D{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "order_events"}})
	commit := opMsgOf(t, bson.D{{Key: "commitTransaction", Value: int32(1)}, {Key: "$db", Value: "admin"}})
	send := []byte("\x00\x00\x00\x1c\x02\x00\x00\x00\x00\x53\x14\xc0\x01\x00cloudEvents_type")
	cbs := []byte("\x00\x00\x00\x18\x02\x00\x00\x00\x00\x53\x14\xc0\x01\x00put-token!")
	settle := []byte("\x00\x00\x00\x0f\x02\x00\x00\x00\x00\x53\x15\xc0\x01\x00")
	want := map[string][]byte{
		"take the lease": take, "renew the lease": renew, "claim the checkpoint": claim, "read changes": read,
		"commit a batch of several collections": commit, "send messages": send, "complete a message": settle,
	}
	for _, step := range Steps() {
		name, before := strings.CutSuffix(step.Name, ": before the server has it")
		if _, known := want[name]; !known || !before {
			continue
		}
		for of, frame := range want {
			if got := step.request(frame); got != (of == name) {
				t.Errorf("%s: by the frame of %q it is told %t, want %t", step.Name, of, got, of == name)
			}
		}
	}
	for _, step := range Steps() {
		if step.request != nil && step.request(cbs) || step.answer != nil && step.answer(cbs) {
			t.Errorf("%s: told by a frame of $cbs", step.Name)
		}
	}
}

// TestFrames_AStreamOfSeveralCollectionsIsToldAsThatOfOne has the stream of a
// collection, and that of a database.
func TestFrames_AStreamOfSeveralCollectionsIsToldAsThatOfOne(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		target any
		cursor string
	}{{"order_events", "order_events"}, {int32(1), "$cmd.aggregate"}} {
		open := opMsgOf(t, bson.D{{Key: "aggregate", Value: of.target}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}}})
		read := opMsgOf(t, bson.D{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: of.cursor}})
		if !opensStream(open) || !readsStream(read) {
			t.Errorf("a stream of %v: opened %t, read %t, want both told", of.target, opensStream(open), readsStream(read))
		}
	}
	count := opMsgOf(t, bson.D{{Key: "aggregate", Value: "order_events"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: bson.D{}}}}}})
	if opensStream(count) {
		t.Error("an aggregation is told as the opening of a stream")
	}
}

func TestFrames_FramesAreReadWhole(t *testing.T) {
	t.Parallel()
	message := opMsgOf(t, bson.D{{Key: "ping", Value: 1}})
	tests := []struct {
		name  string
		read  func(io.Reader) ([]byte, error)
		given []byte
		want  []byte
	}{
		{"a message of MongoDB, and the next one's beginning", readMongo, append(bytes.Clone(message), 1, 2), message},
		{"a protocol header", readAMQP, []byte("AMQP\x03\x01\x00\x00rest"), []byte("AMQP\x03\x01\x00\x00")},
		{"a frame of AMQP", readAMQP, []byte("\x00\x00\x00\x09\x02\x00\x00\x00x+"), []byte("\x00\x00\x00\x09\x02\x00\x00\x00x")},
		{"a length below its own", readAMQP, []byte("\x00\x00\x00\x03x"), nil},
		{"a length above the largest", readMongo, []byte("\xff\xff\xff\x7fx"), nil},
		{"an end in the middle", readMongo, message[:20], nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.read(bytes.NewReader(tt.given))
			if tt.want == nil && err == nil || tt.want != nil && !bytes.Equal(got, tt.want) {
				t.Errorf("got %q and %v, want %q", got, err, tt.want)
			}
		})
	}
}

func FuzzParseCommand(f *testing.F) {
	f.Add([]byte("\x00"))
	f.Add(make([]byte, 40))
	f.Fuzz(func(_ *testing.T, message []byte) {
		if c, ok := parseCommand(message); ok {
			upserts(c)
		}
		performative(message)
	})
}
