package command

import (
	"cmp"
	"encoding/hex"
	"slices"
	"time"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine"
)

// mostListed bounds how many cursors and transactions a report lists.
const mostListed = 100

// CursorReport is one open cursor.
type CursorReport struct {
	Namespace    string `json:"namespace"`
	ChangeStream bool   `json:"change_stream"`
	// Application and User are the client's, empty where it did not say.
	Application string `json:"application"`
	User        string `json:"user"`
	// InUse tells that a command is reading it, or waiting for it.
	InUse       bool  `json:"in_use"`
	IdleSeconds int64 `json:"idle_seconds"`
	// AgeSeconds is how long ago it was opened.
	AgeSeconds int64 `json:"age_seconds"`
}

// report lists cursors, change streams first.
func (s *cursors) report(now time.Time) []CursorReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]CursorReport, 0, len(s.byID))
	for _, c := range s.byID {
		r := CursorReport{
			Namespace: c.NS, ChangeStream: c.Streams, Application: c.appName, User: c.user.Name, InUse: c.busy,
			AgeSeconds: int64(now.Sub(c.opened).Seconds()),
		}
		if !c.busy {
			r.IdleSeconds = int64(now.Sub(c.lastUse).Seconds())
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b CursorReport) int {
		if a.ChangeStream != b.ChangeStream {
			if a.ChangeStream {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Application, b.Application), cmp.Compare(b.IdleSeconds, a.IdleSeconds))
	})
	return list[:min(len(list), mostListed)]
}

// TransactionReport is one open transaction.
type TransactionReport struct {
	Session     string   `json:"session"`
	Number      int64    `json:"number"`
	AgeSeconds  int64    `json:"age_seconds"`
	Writes      int      `json:"writes"`
	Collections []string `json:"collections"`
}

// reportTransactions lists transactions, the oldest first.
func reportTransactions(open []engine.OpenTransaction, now time.Time) []TransactionReport {
	list := make([]TransactionReport, 0, len(open))
	for _, txn := range open[:min(len(open), mostListed)] {
		r := TransactionReport{
			Number: txn.ID.Number, AgeSeconds: int64(now.Sub(txn.Began).Seconds()), Writes: txn.Writes, Collections: []string{},
		}
		id, _ := bsonkit.Get(txn.ID.Session, "id")
		if _, uuid, ok := id.BinaryOK(); ok {
			r.Session = hex.EncodeToString(uuid)
		}
		for _, ns := range txn.Collections {
			r.Collections = append(r.Collections, ns.String())
		}
		list = append(list, r)
	}
	return list
}
