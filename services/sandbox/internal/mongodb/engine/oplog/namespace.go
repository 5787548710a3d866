package oplog

import (
	"strings"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
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

// ValidateNew refuses names under which no collection may be made.
func (n Namespace) ValidateNew() error {
	if err := n.Validate(); err != nil {
		return err
	}
	if len(n.String()) > maxNamespace {
		return mongoerr.New(4862100, "The namespace %s is longer than %d bytes", n, maxNamespace)
	}
	if strings.Contains(n.Collection, "$") {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid collection name: %s", n.Collection)
	}
	if n.IsSystem() && !n.isAccounts() && n.Collection != "system.js" && n.Collection != "system.profile" {
		return mongoerr.New(mongoerr.InvalidNamespace, "cannot write to '%s'", n)
	}
	return nil
}

// IsSystem tells collections that a server keeps for itself.
func (n Namespace) IsSystem() bool { return strings.HasPrefix(n.Collection, "system.") }

// isAccounts tells the collections of users and roles, which commands of their
// own write to.
func (n Namespace) isAccounts() bool {
	return n.DB == "admin" && (n.Collection == "system.users" || n.Collection == "system.roles")
}

// Named completes the text of a duplicate key, which clients read.
func (n Namespace) Named(failure error) error {
	if !mongoerr.Is(failure, mongoerr.DuplicateKey) {
		return failure
	}
	e := *mongoerr.From(failure)
	e.Message = "E11000 duplicate key error collection: " + n.String() + " " + e.Message
	return &e
}
