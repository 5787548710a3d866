package oplog

import (
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Operation is what an oplog entry did.
type Operation uint8

// The operations of the oplog. Those from OpDrop on concern no document.
const (
	OpNoop Operation = iota
	OpInsert
	OpUpdate
	OpReplace
	OpDelete
	OpDrop
	OpRename
	OpDropDatabase
	OpCreate
	OpCreateIndexes
	OpDropIndexes
	OpCollMod

	LastOperation = OpCollMod
)

// String is the operation's name in an event
// (https://www.mongodb.com/docs/manual/reference/change-events/).
func (o Operation) String() string {
	switch o {
	case OpInsert:
		return "insert"
	case OpUpdate:
		return "update"
	case OpReplace:
		return "replace"
	case OpDelete:
		return "delete"
	case OpDrop:
		return "drop"
	case OpRename:
		return "rename"
	case OpDropDatabase:
		return "dropDatabase"
	case OpCreate:
		return "create"
	case OpCreateIndexes:
		return "createIndexes"
	case OpDropIndexes:
		return "dropIndexes"
	case OpCollMod:
		return "collMod"
	default:
		return "noop"
	}
}

// Entry is one change, as the oplog keeps it. Entries are never changed.
type Entry struct {
	Time Timestamp
	// Wall is the server's clock at the change, in milliseconds since 1970.
	Wall int64
	// Index is the entry's place among those of its transaction, from 0. Only
	// entries of one transaction share a Time.
	Index     uint32
	Operation Operation
	// DropTarget tells a rename that took the place of another collection.
	DropTarget bool
	NS         Namespace
	// To is the new name after a rename.
	To   Namespace
	UUID uuid.UUID
	// Key is {_id: …} of the document.
	Key bson.Raw
	// Doc is the whole document of an insert or replacement.
	Doc bson.Raw
	// Updated and Removed describe an update. Further is what else there is to
	// tell, nil for nothing: of an update {truncatedArrays: …, disambiguatedPaths:
	// …}, of what concerns no document its operationDescription.
	Updated bson.Raw
	Removed []string
	Further bson.Raw
	// Before is the document before an update, replacement or deletion, After
	// that after an update: where the collection keeps images.
	Before, After bson.Raw
	// Txn is set on the entries of a transaction.
	Txn *TxnID
	// Note is the text of a no-op.
	Note string
}

// TxnID names the transaction an entry belongs to.
type TxnID struct {
	// Session is the lsid document, with the uid of its user.
	Session bson.Raw
	Number  int64
}

// Change is an entry with what the journal needs to do it again.
type Change struct {
	Entry
	// Record is the record of an entry that concerns a document.
	Record int64
	// Stored is the document after an update; entries of inserts and
	// replacements hold it themselves.
	Stored bson.Raw
	// Listed are the specifications of indexes that were made, or the options of
	// a collection, as they are shown.
	Listed []bson.Raw
	// Names are the indexes that were dropped.
	Names []string
}

// entryOverhead is what an entry takes beside its documents, by estimate.
const entryOverhead = 256

// ConcernsDocument tells an entry about one document from one about a
// collection or more.
func (e *Entry) ConcernsDocument() bool { return e.Operation >= OpInsert && e.Operation <= OpDelete }

func (e *Entry) size() int {
	size := entryOverhead + len(e.Key) + len(e.Doc) + len(e.Updated) + len(e.Further) + len(e.Before) + len(e.After)
	for _, path := range e.Removed {
		size += len(path)
	}
	return size
}

// Size is how many bytes a change takes, by estimate: never less than half of what
// it takes in a record of the journal.
func (c *Change) Size() int {
	size := c.size() + len(c.Stored)
	for _, listed := range c.Listed {
		size += len(listed)
	}
	for _, name := range c.Names {
		size += len(name)
	}
	return size
}

// HasPreImage tells changes of a document that was there before.
func (e *Entry) HasPreImage() bool {
	return e.Operation == OpUpdate || e.Operation == OpReplace || e.Operation == OpDelete
}
