package command

import (
	"time"

	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
)

// Report is a picture of the server for people.
type Report struct {
	URI         string      `json:"uri"`
	Version     string      `json:"version"`
	StartedAt   time.Time   `json:"started_at"`
	Connections int64       `json:"connections"`
	Commands    int64       `json:"commands"`
	Sessions    int         `json:"sessions"`
	Cursors     int         `json:"cursors"`
	Streams     int         `json:"change_streams"`
	FailPoint   bool        `json:"fail_point"`
	Oplog       OplogReport `json:"oplog"`
	// OpenCursors and Transactions list no more than a hundred each.
	OpenCursors  []CursorReport      `json:"open_cursors"`
	Transactions []TransactionReport `json:"transactions"`
	Collections  []CollectionReport  `json:"collections"`
	// Authentication tells that clients have to say who they are.
	Authentication bool `json:"authentication"`
}

// OplogReport is the part of the oplog. Times are absent while it is empty.
type OplogReport struct {
	Entries       int       `json:"entries"`
	MaxEntries    int       `json:"max_entries"`
	Bytes         int       `json:"bytes"`
	MaxBytes      int       `json:"max_bytes"`
	First         time.Time `json:"first,omitzero"`
	Last          time.Time `json:"last,omitzero"`
	WindowSeconds int64     `json:"window_seconds"`
	HistoryLost   bool      `json:"history_lost"`
}

// CollectionReport is one collection.
type CollectionReport struct {
	Namespace string   `json:"namespace"`
	Documents int      `json:"documents"`
	Bytes     int64    `json:"bytes"`
	Indexes   []string `json:"indexes"`
}

// Report takes the picture.
func (s *Server) Report() Report {
	cursors, now := s.Cursors.Stats(), s.Engine.Now()
	report := Report{
		URI: s.URI(), Version: s.Version.String(), StartedAt: s.Started,
		Connections: s.Connections.Load(), Commands: s.Commands.Load(),
		Sessions: s.Engine.Sessions(), Cursors: cursors.Open, Streams: cursors.ChangeStreams,
		FailPoint:   s.FailPoints.armed() || s.faults.armed(),
		Oplog:       reportOplog(s.Engine.Oplog()),
		OpenCursors: s.Cursors.report(now), Transactions: reportTransactions(s.Engine.OpenTransactions(), now),
		Authentication: s.authorization,
		Collections:    []CollectionReport{},
	}
	for _, info := range s.Engine.Collections("") {
		c := CollectionReport{Namespace: info.NS.String(), Documents: info.Count, Bytes: info.Bytes}
		for _, spec := range info.Indexes {
			c.Indexes = append(c.Indexes, spec.Name)
		}
		report.Collections = append(report.Collections, c)
	}
	return report
}

func reportOplog(stats oplog.Stats) OplogReport {
	report := OplogReport{
		Entries: stats.Entries, MaxEntries: stats.MaxEntries, Bytes: stats.Bytes, MaxBytes: stats.MaxBytes,
		HistoryLost: stats.Cut != 0,
	}
	if stats.First != 0 && stats.Last != 0 {
		report.First = time.Unix(int64(stats.First.Seconds()), 0).UTC()
		report.Last = time.Unix(int64(stats.Last.Seconds()), 0).UTC()
		report.WindowSeconds = int64(stats.Last.Seconds()) - int64(stats.First.Seconds())
	}
	return report
}
