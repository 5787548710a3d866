package mongoserver_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/engine"
)

// legacyReply is an OP_REPLY.
type legacyReply struct {
	flags  uint32
	cursor int64
	docs   []bson.Raw
}

// legacyClient speaks as clients did before OP_MSG.
type legacyClient struct {
	t  *testing.T
	nc net.Conn
}

func newLegacyClient(t *testing.T, address string) legacyClient {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	must(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	return legacyClient{t, nc}
}

func (c legacyClient) send(code uint32, payload []byte) {
	c.t.Helper()
	out := binary.LittleEndian.AppendUint32(nil, uint32(16+len(payload)))
	out = append(out, 1, 0, 0, 0, 0, 0, 0, 0)
	out = binary.LittleEndian.AppendUint32(out, code)
	_, err := c.nc.Write(append(out, payload...))
	must(c.t, err)
}

func (c legacyClient) receive() legacyReply {
	c.t.Helper()
	header := make([]byte, 16)
	_, err := io.ReadFull(c.nc, header)
	must(c.t, err)
	rest := make([]byte, binary.LittleEndian.Uint32(header)-16)
	_, err = io.ReadFull(c.nc, rest)
	must(c.t, err)
	r := legacyReply{flags: binary.LittleEndian.Uint32(rest), cursor: int64(binary.LittleEndian.Uint64(rest[4:]))}
	n := binary.LittleEndian.Uint32(rest[16:])
	for rest = rest[20:]; len(rest) > 0; {
		length := binary.LittleEndian.Uint32(rest)
		r.docs, rest = append(r.docs, bson.Raw(rest[:length])), rest[length:]
	}
	if int(n) != len(r.docs) {
		c.t.Fatalf("got %d documents, the reply says %d", len(r.docs), n)
	}
	return r
}

func (c legacyClient) find(ns string, skip, count int32, query any) legacyReply {
	c.t.Helper()
	payload := append(make([]byte, 4), ns+"\x00"...)
	payload = binary.LittleEndian.AppendUint32(payload, uint32(skip))
	payload = binary.LittleEndian.AppendUint32(payload, uint32(count))
	raw, err := bson.Marshal(query)
	must(c.t, err)
	c.send(2004, append(payload, raw...))
	return c.receive()
}

func (c legacyClient) more(ns string, count int32, cursor int64) legacyReply {
	c.t.Helper()
	payload := append(make([]byte, 4), ns+"\x00"...)
	payload = binary.LittleEndian.AppendUint32(payload, uint32(count))
	c.send(2005, binary.LittleEndian.AppendUint64(payload, uint64(cursor)))
	return c.receive()
}

func (r legacyReply) ids() []int32 {
	var ids []int32
	for _, doc := range r.docs {
		ids = append(ids, doc.Lookup("_id").Int32())
	}
	return ids
}

func wantIDs(t *testing.T, what string, r legacyReply, open bool, want ...int32) {
	t.Helper()
	got := r.ids()
	same := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		same = same && got[i] == want[i]
	}
	if !same || (r.cursor != 0) != open {
		t.Errorf("%s: got %v and cursor %d, want %v, open %t", what, got, r.cursor, want, open)
	}
}

func TestLegacy_FindsAndGoesOnByOldRequests(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	for id := range 5 {
		_, err := h.db.Collection("a.b").InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}})
		must(t, err)
	}
	c := newLegacyClient(t, h.server.Addr().String())
	backwards := bson.D{{Key: "$query", Value: bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 0}}}}}, {Key: "$orderby", Value: bson.D{{Key: "_id", Value: -1}}}}

	first := c.find("test.a.b", 1, 2, backwards)
	wantIDs(t, "the first two after one", first, true, 3, 2)
	wantIDs(t, "the rest", c.more("test.a.b", 0, first.cursor), false, 1)
	if gone := c.more("test.a.b", 0, first.cursor); gone.flags&1 == 0 {
		t.Errorf("got flags %b for a cursor that is over, want CursorNotFound", gone.flags)
	}
	wantIDs(t, "two and no more", c.find("test.a.b", 0, -2, bson.D{}), false, 0, 1)
	wantIDs(t, "one and no more", c.find("test.a.b", 0, 1, bson.D{}), false, 0)
	wantIDs(t, "all", c.find("test.a.b", 0, 0, bson.D{}), false, 0, 1, 2, 3, 4)
	if bad := c.find("test.a.b", 0, 0, bson.D{{Key: "$no", Value: 1}}); bad.flags&2 == 0 || bad.docs[0].Lookup("code").Int32() != 2 {
		t.Errorf("got flags %b and %v for a bad query, want QueryFailure with code 2", bad.flags, bad.docs)
	}

	open := c.find("test.a.b", 0, 2, bson.D{})
	payload := binary.LittleEndian.AppendUint64([]byte{0, 0, 0, 0, 1, 0, 0, 0}, uint64(open.cursor))
	c.send(2007, payload)
	if killed := c.more("test.a.b", 0, open.cursor); killed.flags&1 == 0 {
		t.Errorf("got flags %b for a killed cursor, want CursorNotFound", killed.flags)
	}
}

func TestNesting_TooDeepIsAnErrorOnAnOpenConnection(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	c := newRawClient(t, h.server.Addr().String())
	deep := bson.D{}
	for range 250 {
		deep = bson.D{{Key: "a", Value: deep}}
	}
	for name, command := range map[string]bson.D{
		"a document too deep":    {{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{deep}}, {Key: "$db", Value: "test"}},
		"a filter too deep":      {{Key: "find", Value: "c"}, {Key: "filter", Value: deep}, {Key: "$db", Value: "test"}},
		"a pipeline of too much": {{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: deep}}}}, {Key: "$db", Value: "test"}},
	} {
		raw, err := bson.Marshal(command)
		must(t, err)
		reply, err := c.roundTrip(message{body: raw}, time.Minute)
		if err != nil || reply.Lookup("code").Int32() != 15 {
			t.Errorf("%s: got %v and %v, want code 15", name, reply, err)
		}
	}
	ping, err := bson.Marshal(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	must(t, err)
	nc := c.nc
	if reply, err := c.roundTrip(message{body: ping}, time.Minute); err != nil || reply.Lookup("ok").Double() != 1 || c.nc != nc {
		t.Errorf("got %v and %v from the connection afterwards, want ok", reply, err)
	}
}
