package engine

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

	lastOperation = OpCollMod
)

// Entry is one change, as the oplog keeps it. Entries are never changed.
type Entry struct {
	Time Timestamp
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
	// Updated and Removed describe an update.
	Updated bson.Raw
	Removed []string
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

// change is an entry with what the journal needs to do it again.
type change struct {
	Entry
	// record is the record of an entry that concerns a document.
	record int64
	// after is the document after an update; entries of inserts and
	// replacements hold it themselves.
	after bson.Raw
	// listed are the specifications of indexes that were made, or the options of
	// a collection, as they are shown.
	listed []bson.Raw
	// names are the indexes that were dropped.
	names []string
}

// entryOverhead is what an entry takes beside its documents, by estimate.
const entryOverhead = 256

// concernsDocument tells an entry about one document from one about a
// collection or more.
func (e *Entry) concernsDocument() bool { return e.Operation >= OpInsert && e.Operation <= OpDelete }

func (e *Entry) size() int {
	return entryOverhead + len(e.Key) + len(e.Doc) + len(e.Updated) + len(e.Before) + len(e.After)
}
