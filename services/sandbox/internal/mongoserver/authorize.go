package mongoserver

import (
	"fmt"

	"changerelay/services/sandbox/internal/access"
	"changerelay/services/sandbox/internal/bsonkit"
	"changerelay/services/sandbox/internal/mongoerr"
)

// authorize refuses a command that the connection's user may not run. Nothing
// is refused where the server asks for no authentication.
func (c *call) authorize() error {
	needs := c.command.needs
	if !c.server.authorization || needs.anybody {
		return nil
	}
	if err := c.conn.login.refresh(c.server.accounts); err != nil {
		return err
	}
	if c.conn.login.user == (access.Name{}) {
		c.logRefusal("nobody has authenticated")
		return mongoerr.New(mongoerr.Unauthorized, "command %s requires authentication", c.name)
	}
	if err := c.namesEachFieldOnce(); err != nil {
		return err
	}
	if needs.privileges == nil || !c.mayAll(needs.privileges(c)) {
		return c.unauthorized()
	}
	return nil
}

// namesEachFieldOnce refuses a command in which a field comes twice: one of the
// two would be checked, and the other might be run.
func (c *call) namesEachFieldOnce() error {
	seen := map[string]bool{}
	for it := bsonkit.Iterate(c.body); it.Next(); {
		name := string(it.Key())
		if seen[name] {
			return mongoerr.New(mongoerr.FailedToParse, "BSON field '%s.%s' is a duplicate field", c.name, name)
		}
		seen[name] = true
	}
	return nil
}

// unauthorized names the command by its first field and its database: the rest
// may be long, or secret.
func (c *call) unauthorized() error {
	c.logRefusal("a privilege is missing")
	first, _ := c.body.IndexErr(0)
	return mongoerr.New(mongoerr.Unauthorized, "not authorized on %s to execute command %s",
		c.db, fmt.Sprintf("{ %s: %s, $db: %q }", c.name, first.Value(), c.db))
}

func (c *call) logRefusal(reason string) {
	first, _ := c.body.IndexErr(0)
	collection, _ := first.Value().StringValueOK()
	c.conn.log.Info().Str("user", c.conn.login.user.Name).Str("database", c.db).Str("command", c.name).
		Str("collection", collection).Str("reason", reason).Msg("command refused")
}

// mayAll reports whether the user is granted all of that.
func (c *call) mayAll(privileges []access.Privilege) bool {
	return !c.server.authorization || c.conn.login.grants.AllowsAll(privileges...)
}

// may reports whether the user is granted an action.
func (c *call) may(r access.Resource, action access.Action) bool {
	return !c.server.authorization || c.conn.login.grants.Allows(r, action)
}
