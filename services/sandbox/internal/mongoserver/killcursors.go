package mongoserver

import (
	"context"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

func killCursors(_ context.Context, c *call, r *reply) error {
	a := arguments{mismatch: mongoerr.FailedToParse}
	var ids []int64
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.name:
		case "cursors":
			for _, element := range a.array(name, v) {
				id, ok := element.Int64OK()
				if !ok {
					a.wrongType("cursors", element, "long")
				}
				ids = append(ids, id)
			}
		default:
			if !isGeneric(name) {
				a.unknown(mongoerr.FailedToParse, "killCursors", name)
			}
		}
	}
	if len(ids) == 0 {
		a.fail(mongoerr.BadValue, "Must specify at least one cursor id in: killCursors")
	}
	if a.err != nil {
		return a.err
	}
	if !c.may(access.Cluster(), access.KillAnyCursor) && c.server.cursors.ofOthers(c.conn.login.user, ids) {
		return c.unauthorized()
	}
	var killed, unknown []int64
	for _, id := range ids {
		if c.server.cursors.kill(id) {
			killed = append(killed, id)
		} else {
			unknown = append(unknown, id)
		}
	}
	r.longs("cursorsKilled", killed)
	r.longs("cursorsNotFound", unknown)
	r.longs("cursorsAlive", nil)
	r.longs("cursorsUnknown", nil)
	return nil
}

func (r *reply) longs(key string, numbers []int64) {
	r.openArray(key)
	for i, n := range numbers {
		r.int64(arrayKey(i), n)
	}
	r.close()
}
