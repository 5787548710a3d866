package engine

import (
	"strings"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// temporaryPrefix is how the names of temporary collections begin, with a UUID
// behind it.
const temporaryPrefix = "tmp.agg_out."

// NewTemporary names a collection of a database that a statement fills and then
// renames or drops. One that is left by a process that was killed meanwhile is
// dropped when the engine begins.
func NewTemporary(db string) oplog.Namespace {
	return oplog.Namespace{DB: db, Collection: temporaryPrefix + uuid.NewString()}
}

func isTemporary(ns oplog.Namespace) bool {
	id, found := strings.CutPrefix(ns.Collection, temporaryPrefix)
	parsed, err := uuid.Parse(id)
	return found && err == nil && parsed.String() == id
}

// dropTemporaries is for an engine that begins: no statement is under way.
func (e *Engine) dropTemporaries() {
	_ = e.locked(func() error {
		for ns, coll := range e.collections {
			if isTemporary(ns) {
				e.drop(coll)
			}
		}
		return nil
	})
}
