package verify

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/pkg/contract"
)

// Difference is how a document differs from what the source makes.
type Difference string

// The differences.
const (
	Equal Difference = ""
	// Altered: something else is in it than its events up to its position make.
	Altered Difference = "altered"
	// Lost: there is none.
	Lost Difference = "lost"
	// Extra: there is one, and the source makes none.
	Extra Difference = "extra"
	// Behind: it is right for its position, and later events of the source are not
	// applied.
	Behind Difference = "behind"
	// Failed: an event up to its position cannot be projected.
	Failed Difference = "failed"
	// Unsettled: it has changed with every look, so nobody can say.
	Unsettled Difference = "unsettled"

	movedOn Difference = "moved on"
)

// Verdict is what a look at a document has found.
type Verdict struct {
	Projection string `json:"projection"`
	Collection string `json:"collection"`
	Aggregate  string `json:"aggregate,omitempty"`
	// Document is the key of a document that cannot be an aggregate's.
	Document   string     `json:"document,omitempty"`
	Difference Difference `json:"difference"`
	// Sequence is the document's position.
	Sequence contract.Sequence `json:"sequence,omitempty"`
	// Fields are the names of the first fields that differ.
	Fields []string `json:"fields,omitempty"`
	Reason string   `json:"reason,omitempty"`
	// Partly says how what the source makes may not be all of the document, so that this
	// may be the better one; "" where it is.
	Partly string `json:"partly,omitempty"`

	target     Target
	read, made Document
	versioned  bool
	// stopped: the aggregate is halted. ahead is why an event behind the document's
	// position cannot be applied.
	stopped bool
	ahead   string
	// lacks: discarded events are left out. whole: it was right with them.
	lacks, whole bool
}

// waits tells whether a later look may find something else.
func (v *Verdict) waits() bool {
	if v.target.Beside {
		return false
	}
	switch v.Difference {
	case Equal, movedOn:
		return false
	case Altered, Failed:
		return !v.versioned
	}
	return true
}

// Replaced is the document that the verdict is over; nil where there is none.
func (v *Verdict) Replaced() bson.Raw { return v.read.Raw }

// Mendable tells whether Mend can mend the difference, with Config.Partly where what the
// source makes may not be all. It mends nothing of a halted aggregate, whose redrive comes
// first.
func (v *Verdict) Mendable() bool {
	return v.Aggregate != "" && v.Difference != Equal && v.Difference != Failed && !v.stopped
}
