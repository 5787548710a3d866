package engine

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
)

// CollectionInfo describes a collection.
type CollectionInfo struct {
	NS      oplog.Namespace
	UUID    uuid.UUID
	Options CollectionOptions
	Count   int
	Bytes   int64
	Indexes []storage.IndexSpec
	// Keys counts the keys of each index, Uses the statements that have read
	// through it, by its name.
	Keys, Uses map[string]int64
}

// Collections lists the collections of a database by name, or of all databases
// when db is empty.
func (e *Engine) Collections(db string) []CollectionInfo {
	e.mu.Lock()
	defer e.mu.Unlock()
	var infos []CollectionInfo
	for _, coll := range e.collectionsOf(db) {
		infos = append(infos, coll.info())
	}
	return infos
}

// Collection describes one collection; ok is false if it is not there.
func (e *Engine) Collection(ns oplog.Namespace) (info CollectionInfo, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	coll := e.collections[ns]
	if coll == nil {
		return CollectionInfo{}, false
	}
	return coll.info(), true
}

// Options are those of a collection; none if it is not there.
func (e *Engine) Options(ns oplog.Namespace) CollectionOptions {
	e.mu.Lock()
	defer e.mu.Unlock()
	if coll := e.collections[ns]; coll != nil {
		return coll.options
	}
	return CollectionOptions{}
}

func (c *collection) info() CollectionInfo {
	info := CollectionInfo{
		NS: c.ns, UUID: c.uuid, Options: c.options,
		Count: c.table.Records.Len(), Bytes: c.table.Bytes, Indexes: c.table.Specs(),
		Keys: map[string]int64{}, Uses: map[string]int64{},
	}
	for _, ix := range c.table.Indexes {
		info.Keys[ix.Spec.Name], info.Uses[ix.Spec.Name] = int64(ix.Keys.Len()), ix.Uses.Load()
	}
	return info
}

// collectionsOf sorts by name. It needs mu.
func (e *Engine) collectionsOf(db string) []*collection {
	var colls []*collection
	for ns, coll := range e.collections {
		if db == "" || ns.DB == db {
			colls = append(colls, coll)
		}
	}
	slices.SortFunc(colls, func(a, b *collection) int {
		return cmp.Or(cmp.Compare(a.ns.DB, b.ns.DB), cmp.Compare(a.ns.Collection, b.ns.Collection))
	})
	return colls
}

// DatabaseInfo describes a database.
type DatabaseInfo struct {
	Name  string
	Bytes int64
}

// Databases lists the databases by name.
func (e *Engine) Databases() []DatabaseInfo {
	var infos []DatabaseInfo
	for _, c := range e.Collections("") {
		if n := len(infos); n == 0 || infos[n-1].Name != c.NS.DB {
			infos = append(infos, DatabaseInfo{Name: c.NS.DB})
		}
		infos[len(infos)-1].Bytes += c.Bytes
	}
	return infos
}
