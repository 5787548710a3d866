package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// hostileDocuments is a client that sends recorded commands, most of them changed
// in some way.
type hostileDocuments struct {
	*hostility
	address string
	random  *rand.Rand
	nc      net.Conn
	in      *bufio.Reader
	// seen are values of answers: ids of cursors, tokens, times.
	seen []any
	id   uint32
}

func newHostileDocuments(h *hostility, address string, worker int) *hostileDocuments {
	return &hostileDocuments{hostility: h, address: address, random: h.random(worker)}
}

// run plays scenarios until the time is over.
func (c *hostileDocuments) run(ctx context.Context) {
	defer c.hangUp()
	scenarios := recordedScenarios()
	for ctx.Err() == nil {
		scenario := scenarios[c.random.IntN(len(scenarios))]
		database := fmt.Sprint("hostile", c.random.IntN(4))
		for _, command := range scenario {
			if ctx.Err() != nil {
				return
			}
			body := c.settle(command, database).(bson.D)
			for c.random.IntN(5) < 2 {
				body = c.mutate(body, scenarios)
			}
			c.send(database, body)
		}
	}
}

// recordedScenarios are the commands of the recorded scenarios, and of others.
var recordedScenarios = sync.OnceValue(func() [][]bson.D {
	files, err := filepath.Glob("../../internal/mongodb/mongoserver/testdata/vectors/*/*.json")
	if err != nil || len(files) == 0 {
		panic(fmt.Sprint("no recorded scenarios: ", err))
	}
	all := [][]bson.D{commandsOf(otherCommands)}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		var scenario struct {
			Steps []struct{ Command json.RawMessage }
		}
		if err := json.Unmarshal(text, &scenario); err != nil {
			panic(err)
		}
		var commands []string
		for _, step := range scenario.Steps {
			commands = append(commands, string(step.Command))
		}
		all = append(all, commandsOf(commands))
	}
	return all
})

func commandsOf(texts []string) []bson.D {
	var commands []bson.D
	for _, text := range texts {
		var command bson.D
		if bson.UnmarshalExtJSON([]byte(text), false, &command) == nil && len(command) > 0 {
			commands = append(commands, command)
		}
	}
	return commands
}

// otherCommands are some that no scenario has.
var otherCommands = []string{
	`{"insert": "c", "documents": [{"_id": 1, "a": [1, {"b": [2, 3]}]}, {"_id": 2, "a": {"b": "x"}}, {"_id": 3}]}`,
	`{"explain": {"find": "c", "filter": {"a.b": {"$gt": 1}}, "sort": {"a": 1}}, "verbosity": "executionStats"}`,
	`{"explain": {"aggregate": "c", "pipeline": [{"$group": {"_id": "$a", "n": {"$sum": 1}}}], "cursor": {}}}`,
	`{"aggregate": "c", "pipeline": [{"$lookup": {"from": "c", "let": {"x": "$a"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$a", "$$x"]}}}], "as": "l"}}, {"$unwind": "$l"}], "cursor": {}}`,
	`{"aggregate": "c", "pipeline": [{"$bucketAuto": {"groupBy": "$_id", "buckets": 2}}, {"$facet": {"x": [{"$count": "n"}]}}], "cursor": {"batchSize": 1}}`,
	`{"aggregate": "c", "pipeline": [{"$graphLookup": {"from": "c", "startWith": "$_id", "connectFromField": "_id", "connectToField": "a", "as": "g"}}], "cursor": {}}`,
	`{"aggregate": 1, "pipeline": [{"$changeStream": {"allChangesForCluster": true, "showExpandedEvents": true}}], "cursor": {}}`,
	`{"getMore": {"$var": "id"}, "collection": "c", "maxTimeMS": 5}`,
	`{"update": "c", "updates": [{"q": {"a.b": 2}, "u": {"$push": {"a": {"$each": [3, 1], "$sort": 1, "$slice": -2, "$position": 0}}}, "upsert": true}]}`,
	`{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a.$[e].b": 1}}, "arrayFilters": [{"e.b": {"$exists": true}}], "multi": true}]}`,
	`{"update": "c", "updates": [{"q": {}, "u": [{"$set": {"z": {"$map": {"input": "$a", "in": {"$add": ["$$this", 1]}}}}}]}]}`,
	`{"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}, "new": true, "upsert": true, "fields": {"a": {"$slice": 1}}}`,
	`{"delete": "c", "deletes": [{"q": {"a": {"$elemMatch": {"b": 2}}}, "limit": 1}]}`,
	`{"createIndexes": "c", "indexes": [{"key": {"a.b": 1, "_id": -1}, "name": "i", "unique": true, "partialFilterExpression": {"a": {"$exists": true}}}]}`,
	`{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": {"$ne": null}}}]}`,
	`{"create": "k", "capped": true, "size": 4096, "max": 3, "validator": {"$jsonSchema": {"required": ["a"]}}}`,
	`{"find": "k", "tailable": true, "awaitData": true}`,
	`{"collMod": "c", "validator": {"a": {"$type": "array"}}, "validationLevel": "moderate"}`,
	`{"renameCollection": "$db.c", "to": "$db.d", "dropTarget": true}`,
	`{"createUser": "u", "pwd": "p", "roles": ["read"]}`,
	`{"usersInfo": 1}`, `{"rolesInfo": 1, "showPrivileges": true}`, `{"dropUser": "u"}`,
	`{"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": {"$binary": {"base64": "biwsbj11LHI9YWJj", "subType": "00"}}}`,
	`{"fsync": 1, "lock": true}`, `{"fsyncUnlock": 1}`, `{"profile": 2}`, `{"resetError": 1}`, `{"currentOp": 1}`, `{"serverStatus": 1}`, `{"dbStats": 1}`, `{"collStats": "c"}`, `{"validate": "c"}`, `{"getLog": "global"}`,
	`{"getParameter": "*"}`, `{"setParameter": 1, "logLevel": 0}`, `{"killOp": 1, "op": 5}`, `{"killCursors": "c", "cursors": [{"$var": "id"}]}`,
	`{"replSetGetStatus": 1}`, `{"hostInfo": 1}`, `{"listDatabases": 1}`, `{"listCollections": 1}`, `{"listIndexes": "c"}`,
	`{"distinct": "c", "key": "a.b"}`, `{"count": "c", "query": {"$where": "1"}}`, `{"hello": 1, "maxAwaitTimeMS": 5, "topologyVersion": {"processId": {"$oid": "5f0000000000000000000001"}, "counter": {"$numberLong": "1"}}}`,
}

// settle gives the words of the scenarios their meaning.
func (c *hostileDocuments) settle(v any, database string) any {
	switch v := v.(type) {
	case bson.D:
		if len(v) == 1 {
			switch v[0].Key {
			case "$var":
				return c.named(fmt.Sprint(v[0].Value))
			case "$repeat", "$times":
				return bson.A{"x", 1}
			case "$nowPlus":
				return time.Now()
			case "$lsid":
				return c.session()
			}
		}
		out := make(bson.D, 0, len(v))
		for _, e := range v {
			out = append(out, bson.E{Key: e.Key, Value: c.settle(e.Value, database)})
		}
		return out
	case bson.A:
		out := make(bson.A, 0, len(v))
		for _, e := range v {
			out = append(out, c.settle(e, database))
		}
		return out
	case string:
		return strings.ReplaceAll(v, "$db", database)
	}
	return v
}

// earlier is a value of an answer.
func (c *hostileDocuments) earlier() any {
	if len(c.seen) == 0 {
		return int64(1)
	}
	return c.seen[c.random.IntN(len(c.seen))]
}

// named is what a scenario has kept of an answer: an id of a cursor or a token.
func (c *hostileDocuments) named(name string) any {
	for range 8 {
		v := c.earlier()
		if _, isID := v.(int64); isID == (name == "id" || strings.HasPrefix(name, "cid")) {
			return v
		}
	}
	return c.earlier()
}

// session is one of a few sessions, which all clients share.
func (c *hostileDocuments) session() bson.D {
	id := make([]byte, 16)
	id[0] = byte(c.random.IntN(4))
	return bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id}}}
}

// remarkable are values at the edge of what is allowed.
var remarkable = []any{
	nil, true, false, "", "a", "$a", "$$ROOT", "$", "a.b", "a..b", "a.$[].b", strings.Repeat("a.", 300) + "a", "\x00", "\xff\xfe", "c", "v", "k",
	int32(0), int32(1), int32(-1), int32(math.MaxInt32), int32(math.MinInt32), int64(math.MaxInt64), int64(math.MinInt64), int64(1) << 53,
	0.5, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, 1e15,
	bson.NewDecimal128(0x7800000000000000, 0), bson.NewDecimal128(0x5FFE314DC6448D93, 0x38C15B09FFFFFFFF),
	bson.D{},
	bson.A{},
	bson.MinKey{},
	bson.MaxKey{},
	bson.Undefined{},
	bson.Null{},
	bson.ObjectID{},
	bson.DateTime(math.MinInt64), bson.DateTime(math.MaxInt64),
	bson.Timestamp{T: math.MaxUint32, I: math.MaxUint32},
	bson.Timestamp{},
	bson.Regex{Pattern: "(a+)+$", Options: "ix"},
	bson.Regex{Pattern: "("},
	bson.Binary{Subtype: 4, Data: []byte{1}},
	bson.JavaScript("1"),
	bson.CodeWithScope{Code: "1", Scope: bson.D{}},
	bson.Symbol("s"),
	bson.DBPointer{DB: "a"},
}

// fieldNames are options, operators and stages that a field may be renamed to,
// besides those of the scenarios.
var fieldNames = []string{
	"let", "hint", "collation", "comment", "maxTimeMS", "readConcern", "writeConcern", "lsid", "txnNumber", "autocommit", "startTransaction",
	"batchSize", "limit", "skip", "sort", "projection", "singleBatch", "min", "max", "returnKey", "showRecordId", "allowDiskUse", "cursor",
	"explain", "ordered", "bypassDocumentValidation", "$db", "$readPreference", "$clusterTime", "apiVersion", "_id", "", "a.b", "a.$", "$x",
	"$expr", "$function", "$where", "$text", "$near", "$out", "$merge", "$sample", "$unionWith", "$redact", "$densify", "$setWindowFields", "$range",
	"$reduce", "$zip", "$regexFindAll", "$dateToString", "$dateFromString", "$convert", "$pow", "$split", "$concatArrays", "$slice", "$rename",
	"$bit", "$pullAll", "$elemMatch", "$all", "$not", "$jsonSchema", "$mod", "$bitsAllSet", "$type", "expireAfterSeconds", "capped", "size", "viewOn",
}

// mutate changes a command in one place.
func (c *hostileDocuments) mutate(command bson.D, scenarios [][]bson.D) bson.D {
	changed, _ := c.change(command, 6, scenarios).(bson.D)
	if len(changed) == 0 {
		return command
	}
	return changed
}

// change goes down to some value and changes it.
func (c *hostileDocuments) change(v any, depth int, scenarios [][]bson.D) any {
	switch v := v.(type) {
	case bson.D:
		if len(v) > 0 && depth > 0 {
			return c.changeDocument(v, depth, scenarios)
		}
	case bson.A:
		if len(v) > 0 && depth > 0 && c.random.IntN(5) > 0 {
			out := append(bson.A{}, v...)
			i := c.random.IntN(len(out))
			out[i] = c.change(out[i], depth-1, scenarios)
			if c.random.IntN(8) == 0 {
				out = append(out, out[i])
			}
			return out
		}
	}
	return c.another(v, scenarios)
}

func (c *hostileDocuments) changeDocument(v bson.D, depth int, scenarios [][]bson.D) any {
	out := append(bson.D{}, v...)
	i := c.random.IntN(len(out))
	switch c.random.IntN(12) {
	case 0:
		return append(out[:i], out[i+1:]...)
	case 1:
		out[i].Key = c.name(scenarios)
		return out
	case 2:
		return append(out, bson.E{Key: c.name(scenarios), Value: c.another(nil, scenarios)})
	case 3:
		return append(out, out[i])
	case 4:
		if depth < 6 {
			return c.another(v, scenarios)
		}
	case 5:
		j := c.random.IntN(len(out))
		out[i].Value, out[j].Value = out[j].Value, out[i].Value
		return out
	}
	out[i].Value = c.change(out[i].Value, depth-1, scenarios)
	return out
}

// name is the name of some field.
func (c *hostileDocuments) name(scenarios [][]bson.D) string {
	if c.random.IntN(2) == 0 {
		return fieldNames[c.random.IntN(len(fieldNames))]
	}
	d, _ := c.part(scenarios, func(v any) bool { d, ok := v.(bson.D); return ok && len(d) > 0 }).(bson.D)
	if len(d) == 0 {
		return "a"
	}
	return d[c.random.IntN(len(d))].Key
}

// another is a value to stand where v stood.
func (c *hostileDocuments) another(v any, scenarios [][]bson.D) any {
	switch c.random.IntN(8) {
	case 0, 1, 2:
		return remarkable[c.random.IntN(len(remarkable))]
	case 3:
		return c.earlier()
	case 4:
		return bson.A{v, v}
	case 5:
		deep := v
		for range c.random.IntN(210) {
			deep = bson.D{{Key: "$not", Value: deep}}
		}
		return deep
	case 6:
		return bson.D{{Key: c.name(scenarios), Value: v}}
	}
	return c.part(scenarios, func(any) bool { return true })
}

// part is a random part of a random command.
func (c *hostileDocuments) part(scenarios [][]bson.D, fits func(any) bool) any {
	scenario := scenarios[c.random.IntN(len(scenarios))]
	if len(scenario) == 0 {
		return nil
	}
	var v, found any = scenario[c.random.IntN(len(scenario))], nil
	for range 8 {
		if fits(v) {
			found = v
		}
		switch w := v.(type) {
		case bson.D:
			if len(w) == 0 {
				return found
			}
			v = w[c.random.IntN(len(w))].Value
		case bson.A:
			if len(w) == 0 {
				return found
			}
			v = w[c.random.IntN(len(w))]
		default:
			return found
		}
	}
	return found
}

// answerPatience is how long a hostile client waits for an answer before it hangs up.
const answerPatience = 300 * time.Millisecond

// send sends a command in one of the ways there are, and reads the answer.
func (c *hostileDocuments) send(database string, body bson.D) {
	if c.nc == nil {
		nc, err := net.Dial("tcp", c.address)
		if err != nil {
			return // the process is dead, which others notice
		}
		c.connections.Add(1)
		c.nc, c.in = nc, bufio.NewReader(nc)
	}
	if c.random.IntN(8) == 0 {
		body = append(body, bson.E{Key: "lsid", Value: c.session()}, bson.E{Key: "txnNumber", Value: int64(c.id / 16)})
		if c.random.IntN(2) == 0 {
			body = append(body, bson.E{Key: "autocommit", Value: false}, bson.E{Key: "startTransaction", Value: true})
		}
	}
	message, err := c.encode(database, body)
	if err != nil {
		return // no BSON
	}
	if c.random.IntN(20) == 0 {
		for range 1 + c.random.IntN(4) {
			message[c.random.IntN(len(message))] = byte(c.random.Uint32())
		}
	}
	c.commands.Add(1)
	_ = c.nc.SetDeadline(time.Now().Add(answerPatience))
	if _, err := c.nc.Write(message); err != nil {
		c.hangUp()
		return
	}
	if c.random.IntN(30) == 0 {
		c.hangUp() // while the command runs
		return
	}
	reply, err := c.read()
	if err != nil {
		c.hangUp()
		return
	}
	if reply != nil {
		c.judge(reply, body)
	}
}

// encode makes an OP_MSG, with or without a section of kind 1, or an OP_QUERY.
func (c *hostileDocuments) encode(database string, body bson.D) ([]byte, error) {
	code, payload := uint32(2013), make([]byte, 5)
	var section []byte
	switch c.random.IntN(10) {
	case 0:
		code, payload = 2004, append(make([]byte, 4), database+".$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff"...)
	case 1:
		for i, e := range body {
			if documents, ok := e.Value.(bson.A); ok && i > 0 {
				section, body = sequence(e.Key, documents), append(append(bson.D{}, body[:i]...), body[i+1:]...)
				break
			}
		}
	case 2:
		payload[2] = 1 // exhaustAllowed
	}
	if code == 2013 {
		body = append(append(bson.D{}, body...), bson.E{Key: "$db", Value: c.database(database, body)})
	}
	raw, err := bson.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.message(code, append(append(payload, raw...), section...)), nil
}

// message puts a header before what a message says.
func (c *hostileDocuments) message(code uint32, payload []byte) []byte {
	c.id++
	out := binary.LittleEndian.AppendUint32(nil, uint32(16+len(payload)))
	out = binary.LittleEndian.AppendUint32(out, c.id)
	out = binary.LittleEndian.AppendUint32(out, 0)
	return append(binary.LittleEndian.AppendUint32(out, code), payload...)
}

// database is the one that the command is for.
func (c *hostileDocuments) database(database string, body bson.D) string {
	if v, ok := body[0].Value.(int32); ok && v == 1 || c.random.IntN(20) == 0 || body[0].Key == "renameCollection" || body[0].Key == "configureFailPoint" {
		return "admin"
	}
	return database
}

// sequence is a section of kind 1.
func sequence(name string, documents bson.A) []byte {
	section := append([]byte(name), 0)
	for _, d := range documents {
		if raw, err := bson.Marshal(d); err == nil {
			section = append(section, raw...)
		}
	}
	return append(binary.LittleEndian.AppendUint32([]byte{1}, uint32(4+len(section))), section...)
}

// read reads one reply's body.
func (c *hostileDocuments) read() (bson.Raw, error) {
	header := make([]byte, 16)
	if _, err := io.ReadFull(c.in, header); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(header)
	if length < 16+5 || length > 48_000_000 {
		c.complain(fmt.Sprintf("a reply of %d bytes", length), "")
		return nil, io.ErrUnexpectedEOF
	}
	rest := make([]byte, length-16)
	if _, err := io.ReadFull(c.in, rest); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(header[12:]) == 1 {
		if len(rest) == 20 {
			return nil, nil // no document, as for a cursor that is not there
		}
		return rest[20:], nil
	}
	if rest[0]&2 != 0 {
		c.hangUp() // it is one of a stream of replies
	}
	return rest[5:], nil
}

// judge looks at a reply, as a client would that trusts it.
func (c *hostileDocuments) judge(reply bson.Raw, request bson.D) {
	c.answers.Add(1)
	if err := reply.Validate(); err != nil {
		c.complain(fmt.Sprintf("a reply that is no BSON: %v", err), fmt.Sprint(request))
		return
	}
	if id, ok := reply.Lookup("cursor", "id").AsInt64OK(); ok && id != 0 {
		c.see(id)
	}
	if token, ok := reply.Lookup("cursor", "postBatchResumeToken").DocumentOK(); ok {
		c.see(append(bson.Raw{}, token...))
	}
	if t, i, ok := reply.Lookup("operationTime").TimestampOK(); ok && c.random.IntN(20) == 0 {
		c.see(bson.Timestamp{T: t, I: i})
	}
	c.judgeError(reply, request)
	if errs, ok := reply.Lookup("writeErrors").ArrayOK(); ok {
		values, _ := errs.Values()
		for _, v := range values {
			if d, ok := v.DocumentOK(); ok {
				c.judgeError(d, request)
			}
		}
	}
}

func (c *hostileDocuments) judgeError(reply bson.Raw, request bson.D) {
	if ok, isDouble := reply.Lookup("ok").DoubleOK(); isDouble && ok == 1 {
		return
	}
	c.refusals.Add(1)
	code, hasCode := reply.Lookup("code").Int32OK()
	text, _ := reply.Lookup("errmsg").StringValueOK()
	if old, ok := reply.Lookup("$err").StringValueOK(); ok {
		text = old // of an OP_QUERY that is no command
	}
	switch {
	case text == "no option found to get": // the server's own, without a code
	case !hasCode || text == "":
		c.complain("an error without a code or a text: "+reply.String(), fmt.Sprint(request))
	case code == 1 && !strings.Contains(text, "failpoint"):
		encoded, _ := bson.MarshalExtJSON(request, false, false)
		c.complain("an internal error: "+text, string(encoded))
	}
}

func (c *hostileDocuments) see(v any) {
	if len(c.seen) < 50 {
		c.seen = append(c.seen, v)
		return
	}
	c.seen[c.random.IntN(len(c.seen))] = v
}

func (c *hostileDocuments) hangUp() {
	if c.nc != nil {
		_ = c.nc.Close()
		c.nc = nil
	}
}
