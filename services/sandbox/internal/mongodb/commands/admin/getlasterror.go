package admin

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/command"
)

// getLastError reports the write before it, if there was one: that of an old
// client has no answer of its own.
func getLastError(_ context.Context, c *command.Call, r *command.Reply) error {
	r.Int32("connectionId", int32(c.Conn.ID))
	n := int32(0)
	if last := c.Conn.LastWrite; last != nil {
		if n = writtenBy(last); last.Command == "update" {
			describeUpdate(r, last.Reply, n)
		}
	}
	r.Int32("n", n)
	r.Int32("syncMillis", 0)
	r.Null("writtenTo")
	if last := c.Conn.LastWrite; last != nil {
		if failure := failureOf(last.Reply); failure != nil {
			text, _ := failure.Lookup("errmsg").StringValueOK()
			code, _ := failure.Lookup("code").AsInt64OK()
			r.Text("err", text)
			r.Int32("code", int32(code))
			return nil
		}
	}
	r.Null("err")
	return nil
}

// writtenBy counts the documents that an update or a delete has found. A server
// counts none for an insert.
func writtenBy(w *command.LastWrite) int32 {
	n, _ := w.Reply.Lookup("n").AsInt64OK()
	if w.Command == "insert" {
		return 0
	}
	return int32(n)
}

func describeUpdate(r *command.Reply, reply bson.Raw, n int32) {
	upserted, err := reply.LookupErr("upserted", "0", "_id")
	r.Boolean("updatedExisting", err != nil && n > 0)
	if err == nil {
		r.Value("upserted", upserted)
	}
}

// failureOf is what has an error's code and text: the reply, or its last write
// error.
func failureOf(reply bson.Raw) bson.Raw {
	if errors, err := reply.LookupErr("writeErrors"); err == nil {
		values, _ := errors.Array().Values()
		return values[len(values)-1].Document()
	}
	if _, err := reply.LookupErr("errmsg"); err == nil {
		return reply
	}
	return nil
}
