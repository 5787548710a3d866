package resend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"changerelay/pkg/contract"
	"changerelay/services/publisher/internal/checkpoint"
)

// State is what an operator has decided about a resend, or that it has ended.
type State string

// The states. One that is beginning is not carried out yet: the command that began it
// ends that. A resend that is done, incomplete or cancelled stays so. It is done when
// all that was selected was read and finished, and incomplete when it has come to an
// end without that: see Part.Short.
const (
	Beginning  State = contract.ResendBeginning
	Running    State = contract.ResendRunning
	Paused     State = contract.ResendPaused
	Cancelled  State = contract.ResendCancelled
	Incomplete State = contract.ResendIncomplete
	Done       State = contract.ResendDone
)

// Ended reports that there is nothing more to come.
func (s State) Ended() bool { return s == Cancelled || s == Incomplete || s == Done }

// Selection says what to send again. The zero Selection is everything.
type Selection struct {
	// Aggregates are ids, as messages have them.
	Aggregates []string `json:"aggregates,omitempty"`
	// Where is a filter on documents of the source, in Extended JSON.
	Where string `json:"where,omitempty"`
	// Since and Until bound when documents were written; zero is no bound.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Filtered tells whether a document may change so that it is not selected any more.
func (s *Selection) Filtered() bool {
	return s.Where != "" || !s.Since.IsZero() || !s.Until.IsZero()
}

// Record is one resend of a stream, as it is kept.
type Record struct {
	// ID names it in messages, and nothing else ever.
	ID     string
	Stream string
	// Number counts the resends of the stream, from 1 on.
	Number    int64
	State     State
	Group     string
	Selection Selection
	// Rate is how many documents are read in a second at most; 0 is no bound.
	Rate     int
	Who, Why string
	BeganAt  time.Time
	EndedAt  time.Time
	// Total is how many documents were selected when it began; negative where that is
	// not known.
	Total int64
	// Collection is the id of the collection that they are of; empty where it is not
	// known.
	Collection string
	// Parts are one for each partition, each with the aggregates of its own.
	Parts []Part
}

// Part is how far one partition has come.
type Part struct {
	// Place is the token of the last document of the last chunk that is finished; nil
	// before the first.
	Place []byte
	// Term is that of the leader who saved it last.
	Term int64
	// Read counts documents; Sent messages that the topic accepted, Passed changes
	// that are no event of this partition, Failed those that cannot be sent.
	Read, Sent, Passed, Failed int64
	// Failures are the first of the failed ones.
	Failures []Failure
	// Awaits is the time that the stream has to pass before the next chunk is sent; zero
	// where nothing was waited for.
	Awaits checkpoint.ClusterTime
	// Overrun is how many times in a row the next chunk was read in vain, as more changes
	// passed meanwhile than are kept.
	Overrun int
	// Stuck is why the leader could not read the next chunk; empty once it could.
	Stuck string
	Done  bool
	// Short is why a part that is done has not had all that was selected; empty where
	// it has.
	Short     string
	UpdatedAt time.Time
}

// short says what is missing of what was selected at the end of what there is to
// read; empty where nothing is known to be.
func (p *Part) short(total int64) string {
	if p.Read >= total {
		return ""
	}
	return fmt.Sprintf("%d documents were read of %d that were selected when it began: the others were removed before they were reached, "+
		"or changed so that they are not selected any more", p.Read, total)
}

// Failure is a change that cannot be sent again.
type Failure struct {
	AggregateID string `json:"aggregate_id,omitempty" bson:"aggregateId,omitempty"`
	Reason      string `json:"reason"                 bson:"reason"`
}

// mostFailures is how many failures a part names.
const mostFailures = 10

// of is what the messages of a resend say of it.
func (r *Record) of() contract.Resend { return contract.Resend{ID: r.ID, Group: r.Group} }

var (
	// ErrNone is returned where no resend waits for this partition's leader.
	ErrNone = errors.New("there is no resend to go on with")
	// ErrSuperseded means that a later term goes on with the resend.
	ErrSuperseded = errors.New("a later term goes on with the resend")
)

// Store keeps the resends of a stream.
type Store interface {
	// Take returns the resend that is running and not done in a partition, and
	// has it taken and saved by this term and later ones alone; ErrNone where there is
	// none, or a later term has it.
	Take(ctx context.Context, part int, term int64) (Record, error)
	// Save keeps how far a partition has come, in the term that is in it, or returns
	// ErrSuperseded. It keeps what is done of one that was paused or cancelled
	// meanwhile.
	Save(ctx context.Context, id string, part int, progress Part) error
}
