package mongowire

import (
	"bytes"
	"encoding/binary"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Requests of clients from before OP_MSG
// (https://www.mongodb.com/docs/v4.4/legacy-opcodes/) become the command of the
// same meaning: here finds, and what goes on with them.

// queryFlags are flag bits of an OP_QUERY and the options of find that they are.
var queryFlags = []struct {
	bit    uint32
	option string
}{{1 << 1, "tailable"}, {1 << 4, "noCursorTimeout"}, {1 << 5, "awaitData"}, {1 << 7, "allowPartialResults"}}

// queryModifiers are the fields that may stand beside $query, and the options of
// find that they are.
var queryModifiers = map[string]string{
	"$orderby": "sort", "$hint": "hint", "$maxTimeMS": "maxTimeMS", "$min": "min", "$max": "max",
	"$returnKey": "returnKey", "$showDiskLoc": "showRecordId", "$comment": "comment",
}

// parseQuery reads an OP_QUERY: a command where its namespace ends in ".$cmd",
// and otherwise a find.
func parseQuery(id int32, rest []byte) (*Request, error) {
	if len(rest) < 4 {
		return nil, broken("OP_QUERY without flags")
	}
	flags, rest := binary.LittleEndian.Uint32(rest), rest[4:]
	namespace, rest, err := takeNamespace("OP_QUERY", rest)
	if err != nil {
		return nil, err
	}
	if len(rest) < 8 {
		return nil, broken("OP_QUERY without numbers to skip and return")
	}
	skip, count := int32(binary.LittleEndian.Uint32(rest)), int32(binary.LittleEndian.Uint32(rest[4:]))
	body, rest, err := takeDocument(rest[8:])
	if err != nil {
		return nil, err
	}
	var fields bson.Raw // without meaning for a command
	if len(rest) > 0 {
		if fields, rest, err = takeDocument(rest); err != nil {
			return nil, err
		}
	}
	if len(rest) > 0 {
		return nil, broken("OP_QUERY with %d bytes after its end", len(rest))
	}
	if namespace.collection == "$cmd" {
		return &Request{ID: id, Legacy: true, Database: namespace.database, Body: unwrapQuery(body)}, nil
	}
	b := bsoncore.NewDocumentBuilder().AppendString("find", namespace.collection)
	appendQuery(b, body)
	if fields != nil {
		b.AppendDocument("projection", bsoncore.Document(fields))
	}
	b.AppendInt32("skip", skip)
	appendCount(b, count)
	for _, flag := range queryFlags {
		if flags&flag.bit != 0 {
			b.AppendBoolean(flag.option, true)
		}
	}
	r := namespace.request(id, b)
	r.exhausts = flags&exhaustFlag != 0
	return r, nil
}

// exhaustFlag asks for all batches of a find, one answer after another.
const exhaustFlag = 1 << 6

// Next is the request that a legacy find which asked for all of its batches goes
// on with after a reply, nil if there is none.
func (r *Request) Next(reply bson.Raw) *Request {
	cursor, ok := reply.Lookup("cursor", "id").Int64OK()
	if !r.exhausts || !ok || cursor == 0 {
		return nil
	}
	_, collection, _ := strings.Cut(reply.Lookup("cursor", "ns").StringValue(), ".")
	b := bsoncore.NewDocumentBuilder().AppendInt64("getMore", cursor).AppendString("collection", collection)
	if size, err := r.Body.LookupErr("batchSize"); err == nil {
		b.AppendValue("batchSize", bsoncore.Value{Type: bsoncore.Type(size.Type), Data: size.Value})
	}
	next := legacyNamespace{database: r.Database}.request(r.ID, b)
	next.exhausts = true
	return next
}

// appendQuery appends the filter, and the modifiers beside it.
func appendQuery(b *bsoncore.DocumentBuilder, body bson.Raw) {
	if unwrapped := unwrapQuery(body); len(unwrapped) == len(body) {
		b.AppendDocument("filter", bsoncore.Document(body))
		return
	}
	elements, _ := body.Elements()
	b.AppendDocument("filter", bsoncore.Document(unwrapQuery(body)))
	for _, e := range elements {
		if option, known := queryModifiers[e.Key()]; known {
			v := e.Value()
			b.AppendValue(option, bsoncore.Value{Type: bsoncore.Type(v.Type), Data: v.Value})
		}
	}
}

// appendCount says how many documents are wanted: none is the server's own
// choice, and 1 or less than none is as many and no more.
func appendCount(b *bsoncore.DocumentBuilder, count int32) {
	switch {
	case count == 1 || count < 0:
		b.AppendInt64("limit", max(int64(count), -int64(count)))
		b.AppendBoolean("singleBatch", true)
	case count > 0:
		b.AppendInt32("batchSize", count)
	}
}

// parseGetMore reads an OP_GET_MORE.
func parseGetMore(id int32, rest []byte) (*Request, error) {
	if len(rest) < 4 {
		return nil, broken("OP_GET_MORE is cut off")
	}
	namespace, rest, err := takeNamespace("OP_GET_MORE", rest[4:])
	if err != nil {
		return nil, err
	}
	if len(rest) != 12 {
		return nil, broken("OP_GET_MORE ends in %d bytes instead of a number to return and a cursor", len(rest))
	}
	count, cursor := int32(binary.LittleEndian.Uint32(rest)), int64(binary.LittleEndian.Uint64(rest[4:]))
	b := bsoncore.NewDocumentBuilder().AppendInt64("getMore", cursor).AppendString("collection", namespace.collection)
	if count != 0 {
		b.AppendInt64("batchSize", max(int64(count), -int64(count)))
	}
	return namespace.request(id, b), nil
}

// parseKillCursors reads an OP_KILL_CURSORS, which has no reply.
func parseKillCursors(id int32, rest []byte) (*Request, error) {
	if len(rest) < 8 || len(rest) != 8+8*int(int32(binary.LittleEndian.Uint32(rest[4:]))) {
		return nil, broken("OP_KILL_CURSORS of %d bytes", len(rest))
	}
	cursors := bsoncore.NewArrayBuilder()
	for rest = rest[8:]; len(rest) > 0; rest = rest[8:] {
		cursors.AppendInt64(int64(binary.LittleEndian.Uint64(rest)))
	}
	b := bsoncore.NewDocumentBuilder().AppendString("killCursors", "$cmd").AppendArray("cursors", cursors.Build())
	r := legacyNamespace{database: "admin"}.request(id, b)
	r.Flags = MoreToCome
	return r, nil
}

// legacyNamespace is what a legacy request is about.
type legacyNamespace struct{ database, collection string }

func takeNamespace(op string, src []byte) (legacyNamespace, []byte, error) {
	name, rest, ended := bytes.Cut(src, []byte{0})
	if !ended {
		return legacyNamespace{}, nil, broken("%s whose namespace does not end", op)
	}
	database, collection, _ := strings.Cut(string(name), ".")
	return legacyNamespace{database, collection}, rest, nil
}

// request is a request that is no command.
func (n legacyNamespace) request(id int32, body *bsoncore.DocumentBuilder) *Request {
	return &Request{ID: id, Legacy: true, Plain: true, Database: n.database, Body: bson.Raw(body.Build())}
}

// unwrapQuery takes the command out of {$query: command, …}, as old shells and
// drivers with a read preference send it.
func unwrapQuery(body bson.Raw) bson.Raw {
	first, err := body.IndexErr(0)
	if err != nil || first.Key() != "$query" {
		return body
	}
	if inner, ok := first.Value().DocumentOK(); ok {
		return inner
	}
	return body
}
