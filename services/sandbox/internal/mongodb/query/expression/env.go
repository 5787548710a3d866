package expression

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/javascript"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
)

// Env is what an expression may read besides the document.
type Env struct {
	// Now is $$NOW. It is cut to milliseconds, as BSON dates are.
	Now time.Time
	// ClusterTime is $$CLUSTER_TIME.
	ClusterTime bson.Timestamp
	// Let are the user's variables, each read as $$name: the `let` of a
	// command or the `c` of an update statement. The first of a name is the one
	// that is read, and an undefined value stands for a variable whose value is
	// missing. Many environments share what is large.
	Let []bson.Raw
	// Collation is how filters compare text. Expressions compare bytes: who
	// compiles one where that could matter refuses the collation.
	Collation *collation.Collation
	// Interrupted, if not nil, is asked now and then; an error ends what is being
	// evaluated. It may be called by several goroutines at once.
	Interrupted func() error
	// Spills tells that sorts and groups may take more memory than usual
	// (allowDiskUse).
	Spills bool
	// Scripts runs JavaScript. It is nil where none may be run.
	Scripts *javascript.Session
	// Where tells that filters may have $where.
	Where bool
	// Patterns, if not nil, bounds the regular expressions of filters. Environments
	// that are for one statement share it.
	Patterns *Patterns
	// Folding, if not nil, is told of constants that cannot be computed. It is nil
	// where the server computes none beforehand.
	Folding *Folding
}

// Folding is how the constant parts of expressions fare that the server computes
// when it optimizes a filter or a pipeline, after it has read all of it.
type Folding struct{ err error }

// note keeps the first error.
func (f *Folding) note(err error) {
	if f != nil && f.err == nil && !mongoerr.Is(err, mongoerr.BSONObjectTooLarge) {
		f.err = err
	}
}

// Err is the first error, which the server answers with even if nothing was to be
// computed in the end. What is merely too large fails when it is reached.
func (f *Folding) Err() error { return f.err }
