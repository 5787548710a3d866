package data

import (
	"context"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func killCursors(_ context.Context, c *command.Call, r *command.Reply) error {
	a := command.Arguments{Mismatch: mongoerr.FailedToParse}
	var ids []int64
	given := false
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name, v := string(it.Key()), it.Value()
		switch name {
		case c.Name:
			if collection := a.Text(name, v); collection == "" {
				a.Fail(mongoerr.InvalidNamespace, "Invalid collection name specified '%s.'", c.DB)
			}
		case "cursors":
			given = true
			for _, element := range a.Array(name, v) {
				id, ok := element.Int64OK()
				if !ok {
					a.WrongType("cursors", element, "long")
				}
				ids = append(ids, id)
			}
		default:
			if !command.IsGeneric(name) {
				a.Unknown(mongoerr.FailedToParse, "killCursors", name)
			}
		}
	}
	switch {
	case !given:
		a.Fail(mongoerr.FailedToParse, "Field 'cursors' must be of type array in: killCursors")
	case len(ids) == 0:
		a.Fail(mongoerr.BadValue, "Must specify at least one cursor id in: killCursors")
	}
	if a.Err != nil {
		return a.Err
	}
	if !c.May(access.Cluster(), access.KillAnyCursor) && c.Server.Cursors.OfOthers(c.Conn.Login.User, ids) {
		return c.Unauthorized()
	}
	var killed, unknown []int64
	for _, id := range ids {
		if c.Server.Cursors.Kill(id) {
			killed = append(killed, id)
		} else {
			unknown = append(unknown, id)
		}
	}
	r.Longs("cursorsKilled", killed)
	r.Longs("cursorsNotFound", unknown)
	r.Longs("cursorsAlive", nil)
	r.Longs("cursorsUnknown", nil)
	return nil
}
