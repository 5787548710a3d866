package engine

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// CollectionInfo describes a collection.
type CollectionInfo struct {
	NS      Namespace
	UUID    uuid.UUID
	Options CollectionOptions
	Count   int
	Bytes   int64
	Indexes []IndexSpec
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
func (e *Engine) Collection(ns Namespace) (info CollectionInfo, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	coll := e.collections[ns]
	if coll == nil {
		return CollectionInfo{}, false
	}
	return coll.info(), true
}

// Options are those of a collection; none if it is not there.
func (e *Engine) Options(ns Namespace) CollectionOptions {
	e.mu.Lock()
	defer e.mu.Unlock()
	if coll := e.collections[ns]; coll != nil {
		return coll.options
	}
	return CollectionOptions{}
}

func (c *collection) info() CollectionInfo {
	return CollectionInfo{
		NS: c.ns, UUID: c.uuid, Options: c.options,
		Count: c.table.records.Len(), Bytes: c.table.bytes, Indexes: c.table.specs(),
	}
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
