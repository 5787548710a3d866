package mongoserver_test

import (
	"encoding/binary"
	"errors"
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
	h := startVersion(t, "5.0")
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

// write sends a legacy write and returns what getLastError says of it.
func (c legacyClient) write(code uint32, head []byte, docs ...bson.D) bson.Raw {
	c.t.Helper()
	for _, doc := range docs {
		raw, err := bson.Marshal(doc)
		must(c.t, err)
		head = append(head, raw...)
	}
	c.send(code, head)
	return c.find("test.$cmd", 0, -1, bson.D{{Key: "getLastError", Value: 1}}).docs[0]
}

func TestLegacy_WritesAndAsksHowItWent(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "5.0")
	c := newLegacyClient(t, h.server.Addr().String())
	ns := "test.old\x00"
	insert := func(flags byte, docs ...bson.D) bson.Raw {
		return c.write(2002, append([]byte{flags, 0, 0, 0}, ns...), docs...)
	}
	update := func(flags byte, filter, change bson.D) bson.Raw {
		return c.write(2001, append(append(make([]byte, 4), ns...), flags, 0, 0, 0), filter, change)
	}
	remove := func(flags byte, filter bson.D) bson.Raw {
		return c.write(2006, append(append(make([]byte, 4), ns...), flags, 0, 0, 0), filter)
	}
	id := func(n int32) bson.D { return bson.D{{Key: "_id", Value: n}} }
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "seen", Value: true}}}}
	const single, upsert, multi = 1, 1, 2

	for _, step := range []struct {
		name    string
		got     bson.Raw
		n, code int32
	}{
		{"an insert", insert(0, id(1), id(2)), 0, 0},
		{"an insert that ends at a duplicate", insert(0, id(1), id(3)), 0, 11000},
		{"an insert that goes on behind one", insert(1, id(1), id(4)), 0, 11000},
		{"an update of one", update(0, bson.D{}, set), 1, 0},
		{"an update of all", update(multi, bson.D{}, set), 3, 0},
		{"an upsert", update(upsert, id(9), set), 1, 0},
		{"an update that cannot be", update(0, id(9), bson.D{{Key: "$no", Value: 1}}), 0, 9},
		{"a delete of one", remove(single, bson.D{}), 1, 0},
		{"a delete of all", remove(0, bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 3}}}}), 2, 0},
	} {
		n, code := step.got.Lookup("n").Int32(), int32(0)
		if step.got.Lookup("err").Type != bson.TypeNull {
			code = step.got.Lookup("code").Int32()
		}
		if n != step.n || code != step.code {
			t.Errorf("%s: got %d documents and code %d, want %d and %d: %v", step.name, n, code, step.n, step.code, step.got)
		}
	}
	if got := update(upsert, id(7), set); got.Lookup("upserted").Int32() != 7 || got.Lookup("updatedExisting").Boolean() {
		t.Errorf("got %v for an upsert, want the id and no existing one", got)
	}
	wantIDs(t, "what is left", c.find("test.old", 0, 0, bson.D{}), false, 2, 7)
	if got := c.find("test.$cmd", 0, -1, bson.D{{Key: "getLastError", Value: 1}}).docs[0]; got.Lookup("n").Int32() != 0 {
		t.Errorf("got %v after a find, want nothing of the write before", got)
	}
}

// Batches of a find that asks for all of them come one after another; the last
// one ends the stream, and the connection takes requests again.
func TestLegacy_AFindThatExhaustsItsCursor(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "5.0")
	for id := range 5 {
		_, err := h.db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}})
		must(t, err)
	}
	c := newLegacyClient(t, h.server.Addr().String())
	payload := append([]byte{1 << 6, 0, 0, 0}, "test.c\x00"...)
	payload = binary.LittleEndian.AppendUint32(payload, 0)
	payload = binary.LittleEndian.AppendUint32(payload, 2)
	c.send(2004, append(payload, 5, 0, 0, 0, 0))
	wantIDs(t, "the first two", c.receive(), true, 0, 1)
	wantIDs(t, "two more", c.receive(), true, 2, 3)
	wantIDs(t, "the last", c.receive(), false, 4)
	wantIDs(t, "another find", c.find("test.c", 4, 0, bson.D{}), false, 4)
}

// SERVER-57391, 5745702 and service_entry_point_common.cpp of 6.0: what is left is
// what a driver begins a connection with.
func TestLegacy_RequestsAreRefusedSince6(t *testing.T) {
	t.Parallel()
	h := startVersion(t, "6.0")
	c := newLegacyClient(t, h.server.Addr().String())
	for name, code := range map[string]int32{
		"isMaster": 0, "ismaster": 0, "hello": 0, "buildInfo": 0, "ping": 352, "getLastError": 352, "find": 352, "nosuch": 352,
	} {
		reply := c.find("admin.$cmd", 0, -1, bson.D{{Key: name, Value: 1}}).docs[0]
		if got, _ := reply.Lookup("code").Int32OK(); got != code {
			t.Errorf("%s: got code %d in %v, want %d", name, got, reply, code)
		}
	}
	for name, refused := range map[string]legacyReply{
		"a find": c.find("test.c", 0, 0, bson.D{}), "a getMore": c.more("test.c", 0, 5),
	} {
		if refused.flags&2 == 0 || refused.docs[0].Lookup("code").Int32() != 5739101 {
			t.Errorf("%s: got flags %b and %v, want QueryFailure with code 5739101", name, refused.flags, refused.docs)
		}
	}
	ask(t, h.db, []answer{{`{"getLastError": 1}`, `{"code": 59}`}})
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	c.send(2002, append(append(make([]byte, 4), "test.c\x00"...), doc...))
	if n, err := c.nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %d bytes and %v after an insert, want the end of the connection", n, err)
	}
	ask(t, h.db, []answer{{`{"count": "c"}`, `{"n": 0}`}})
}

// The same by OP_MSG: a getMore that allows it is answered with all batches.
func TestExhaust_AGetMoreIsAnsweredWithAllBatches(t *testing.T) {
	t.Parallel()
	h := start(t, engine.Config{})
	for id := range 5 {
		_, err := h.db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}})
		must(t, err)
	}
	c := newRawClient(t, h.server.Addr().String())
	find, err := bson.Marshal(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "test"}})
	must(t, err)
	first, err := c.roundTrip(message{body: find}, time.Minute)
	must(t, err)
	more, err := bson.Marshal(bson.D{
		{Key: "getMore", Value: first.Lookup("cursor", "id").Int64()},
		{Key: "collection", Value: "c"},
		{Key: "batchSize", Value: 2},
		{Key: "$db", Value: "test"},
	})
	must(t, err)
	const exhaustAllowed = 1 << 16
	replies, err := c.stream(message{body: more, flags: exhaustAllowed}, 3, time.Minute)
	must(t, err)
	for i, want := range []struct {
		documents int
		more      bool
	}{{2, true}, {2, true}, {0, false}} {
		batch, err := replies[i].body.Lookup("cursor", "nextBatch").Array().Values()
		must(t, err)
		if len(batch) != want.documents || replies[i].more != want.more {
			t.Errorf("reply %d: got %d documents, more to come %t, want %d and %t", i, len(batch), replies[i].more, want.documents, want.more)
		}
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
