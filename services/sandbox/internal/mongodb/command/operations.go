package command

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// operations are the commands under way, by their number.
type operations struct {
	mu   sync.Mutex
	last int32
	byID map[int32]*operation
}

type operation struct {
	id   int32
	call *Call
	// AppName is that of the client when the command began.
	appName string
	// owner is the uid of the sessions of its user.
	owner []byte
	began time.Time
	stop  context.CancelCauseFunc
	// killed tells that it has been asked to end.
	killed bool
}

func newOperations() *operations { return &operations{byID: map[int32]*operation{}} }

// errOperationKilled is why a command ends that killOp has named.
var errOperationKilled = mongoerr.New(mongoerr.Interrupted, "operation was interrupted")

// begin makes a command known until end is called. The context ends when it is
// killed.
func (o *operations) begin(ctx context.Context, c *Call) (_ context.Context, end func()) {
	ctx, stop := context.WithCancelCause(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	op := &operation{id: o.last, call: c, appName: c.Conn.AppName, owner: c.Conn.Login.SessionOwner(), began: time.Now(), stop: stop}
	o.byID[op.id] = op
	return ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.byID, op.id)
		stop(nil)
	}
}

// Kill ends a command of that number, if there is one.
func (o *operations) Kill(id int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if op := o.byID[id]; op != nil {
		op.killed = true
		op.stop(errOperationKilled)
	}
}

// Running counts the commands under way, those that write and all others.
func (o *operations) Running() (readers, writers int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.byID {
		if op.call.command != nil && op.call.command.Write {
			writers++
		} else {
			readers++
		}
	}
	return readers, writers
}

// Describe lists the commands under way, the oldest first: those of the user whose
// sessions have the uid owner, or all for nil.
func (o *operations) Describe(owner []byte) []bson.Raw {
	o.mu.Lock()
	defer o.mu.Unlock()
	var docs []bson.Raw
	for _, op := range slices.SortedFunc(maps.Values(o.byID), func(a, b *operation) int { return cmp.Compare(a.id, b.id) }) {
		if owner == nil || bytes.Equal(op.owner, owner) {
			docs = append(docs, op.describe())
		}
	}
	return docs
}

func (op *operation) describe() bson.Raw {
	c, r := op.call, NewReply()
	took := time.Since(op.began)
	r.Text("type", "op")
	r.Text("host", c.Address())
	r.Text("desc", "conn"+bsonkit.ArrayKey(int(c.Conn.ID)))
	r.Int64("connectionId", c.Conn.ID)
	r.Text("client", c.Conn.Nc.RemoteAddr().String())
	r.Text("appName", op.appName)
	r.Boolean("active", true)
	r.Text("currentOpTime", op.began.UTC().Format("2006-01-02T15:04:05.000+00:00"))
	r.Int32("opid", op.id)
	r.Int64("secs_running", int64(took.Seconds()))
	r.Int64("microsecs_running", took.Microseconds())
	r.Text("op", kindOf(c.Name))
	first, _ := c.Body.IndexErr(0)
	name, _ := first.Value().StringValueOK()
	r.Text("ns", c.DB+"."+name)
	r.Document("command", c.Body)
	if op.killed {
		r.Boolean("killPending", true)
	}
	r.Boolean("waitingForLock", false)
	r.Close()
	return r.Doc
}

// kindOf is the kind that a command is listed under.
func kindOf(name string) string {
	switch name {
	case "insert", "update":
		return name
	case "delete":
		return "remove"
	case "find":
		return "query"
	case "getMore":
		return "getmore"
	}
	return "command"
}

// OpKinds are what serverStatus counts operations by.
var OpKinds = []string{"insert", "query", "update", "delete", "getmore", "command"}

// opCounters counts operations by their kind: documents inserted, statements of
// update and delete, and all other commands.
type opCounters [6]atomic.Int64

func (o *opCounters) add(c *Call) {
	kind, n := kindOf(c.Name), int64(1)
	switch c.Name {
	case "insert":
		n = c.statements("documents")
	case "update":
		n = c.statements("updates")
	case "delete":
		kind, n = "delete", c.statements("deletes")
	}
	o[slices.Index(OpKinds, kind)].Add(n)
}

func (o *opCounters) Of(kind string) int64 { return o[slices.Index(OpKinds, kind)].Load() }

// statements counts those of a write, whether they are in its body or beside
// it.
func (c *Call) statements(name string) int64 {
	for _, sequence := range c.Request.Sequences {
		if sequence.Name == name {
			return int64(len(sequence.Documents))
		}
	}
	values, _ := ArrayOf(c.Body, name).Values()
	return int64(len(values))
}
