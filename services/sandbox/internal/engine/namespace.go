package engine

import (
	"strings"

	"changerelay/services/sandbox/internal/mongoerr"
)

// Namespace names a collection.
type Namespace struct {
	DB         string
	Collection string
}

func (n Namespace) String() string { return n.DB + "." + n.Collection }

// Names longer than this are refused, as by the server
// (https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions).
const (
	maxDatabaseName = 63
	maxNamespace    = 255
)

// ValidateDatabase refuses names that no database can have.
func ValidateDatabase(name string) error {
	if name == "" || len(name) > maxDatabaseName || strings.ContainsAny(name, "/\\. \"$\x00") {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid database name: '%s'", name)
	}
	return nil
}

// Validate refuses names that no collection can have.
func (n Namespace) Validate() error {
	if err := ValidateDatabase(n.DB); err != nil {
		return err
	}
	if n.Collection == "" || strings.HasPrefix(n.Collection, ".") || strings.ContainsAny(n.Collection, "\x00") {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", n)
	}
	return nil
}

// validateNew refuses names under which no collection may be made.
func (n Namespace) validateNew() error {
	if err := n.Validate(); err != nil {
		return err
	}
	if strings.Contains(n.Collection, "$") || len(n.String()) > maxNamespace {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid collection name: %s", n.Collection)
	}
	if n.isSystem() && !n.isAccounts() {
		return mongoerr.New(mongoerr.InvalidNamespace, "cannot write to '%s'", n)
	}
	return nil
}

// isSystem tells collections that a server keeps for itself.
func (n Namespace) isSystem() bool { return strings.HasPrefix(n.Collection, "system.") }

// isAccounts tells the collections of users and roles, which commands of their
// own write to.
func (n Namespace) isAccounts() bool {
	return n.DB == "admin" && (n.Collection == "system.users" || n.Collection == "system.roles")
}
