package command

import (
	"fmt"

	"changerelay/services/sandbox/internal/mongodb/access"
	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// authorize refuses a command that the connection's user may not run. Nothing
// is refused where the server asks for no authentication.
func (c *Call) authorize() error {
	needs := c.command.Needs
	if !c.Server.authorization || needs.Anybody {
		return nil
	}
	if err := c.Conn.Login.Refresh(c.Server.Accounts); err != nil {
		return err
	}
	if c.Conn.Login.User == (access.Name{}) {
		c.logRefusal("nobody has authenticated")
		return mongoerr.New(mongoerr.Unauthorized, "command %s requires authentication", c.Name)
	}
	if err := c.namesEachFieldOnce(); err != nil {
		return err
	}
	if needs.Privileges == nil || !c.MayAll(needs.Privileges(c)) {
		return c.Unauthorized()
	}
	return nil
}

// namesEachFieldOnce refuses a command in which a field comes twice: one of the
// two would be checked, and the other might be run.
func (c *Call) namesEachFieldOnce() error {
	seen := map[string]bool{}
	for it := bsonkit.Iterate(c.Body); it.Next(); {
		name := string(it.Key())
		if seen[name] {
			return mongoerr.New(mongoerr.FailedToParse, "BSON field '%s.%s' is a duplicate field", c.Name, name)
		}
		seen[name] = true
	}
	return nil
}

// Unauthorized names the command by its first field and its database: the rest
// may be long, or secret.
func (c *Call) Unauthorized() error {
	c.logRefusal("a privilege is missing")
	first, _ := c.Body.IndexErr(0)
	return mongoerr.New(mongoerr.Unauthorized, "not authorized on %s to execute command %s",
		c.DB, fmt.Sprintf("{ %s: %s, $db: %q }", c.Name, first.Value(), c.DB))
}

func (c *Call) logRefusal(reason string) {
	first, _ := c.Body.IndexErr(0)
	collection, _ := first.Value().StringValueOK()
	c.Conn.Log.Info().Str("user", c.Conn.Login.User.Name).Str("database", c.DB).Str("command", c.Name).
		Str("collection", collection).Str("reason", reason).Msg("command refused")
}

// MayAll reports whether the user is granted all of that.
func (c *Call) MayAll(privileges []access.Privilege) bool {
	return !c.Server.authorization || c.Conn.Login.Grants.AllowsAll(privileges...)
}

// May reports whether the user is granted an action.
func (c *Call) May(r access.Resource, action access.Action) bool {
	return !c.Server.authorization || c.Conn.Login.Grants.Allows(r, action)
}
