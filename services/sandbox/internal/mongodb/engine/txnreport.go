package engine

import (
	"slices"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// OpenTransaction describes a transaction that has not ended.
type OpenTransaction struct {
	ID    oplog.TxnID
	Began time.Time
	// Writes counts the documents that it has written.
	Writes int
	// Collections are those that it has written to.
	Collections []oplog.Namespace
}

// OpenTransactions describes those that have not ended, the oldest first.
func (e *Engine) OpenTransactions() []OpenTransaction {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]OpenTransaction, 0, len(e.open))
	for txn := range e.open {
		t := OpenTransaction{ID: txn.id, Began: txn.began, Writes: len(txn.ops)}
		for ns := range txn.own {
			t.Collections = append(t.Collections, ns)
		}
		slices.SortFunc(t.Collections, func(a, b oplog.Namespace) int { return strings.Compare(a.String(), b.String()) })
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b OpenTransaction) int { return a.Began.Compare(b.Began) })
	return list
}

// IdleTransaction is an open transaction that no command works in.
type IdleTransaction struct {
	OpenTransaction
	// LastUse is when its last command began.
	LastUse time.Time
	Client  Client
}

// IdleTransactions describes those that no command works in, the oldest first.
func (e *Engine) IdleTransactions() []IdleTransaction {
	open := e.OpenTransactions()
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	var idle []IdleTransaction
	for i := range open {
		if s := e.sessions.byID[string(open[i].ID.Session)]; s != nil && len(s.gate) == 0 {
			idle = append(idle, IdleTransaction{open[i], s.lastUse, s.client})
		}
	}
	return idle
}
