package validate

import (
	"cmp"
	"slices"

	"changerelay/services/e2e/internal/check/expect"
)

// Unlike finds messages that are not what the source owes for their event: a
// part that differs, is missing, or too many. Events that the source does not
// hold are Unknown's to find.
func Unlike(owed map[Event]expect.Print, sends []Send) Findings {
	var f Findings
	for i := range sends {
		want, found := owed[sends[i].Event]
		if !found {
			continue
		}
		if parts := sends[i].Print.Differences(want); len(parts) > 0 {
			f.Add("%s version %d, message %s: not what its document says: %v", sends[i].Aggregate, sends[i].Version, sends[i].MessageID, parts)
		}
	}
	return f
}

// Mortal finds messages that the broker may drop before anybody has received them.
func Mortal(sends []Send) Findings {
	var f Findings
	for i := range sends {
		if s := &sends[i]; s.TimeToLive > 0 {
			f.Add("%s version %d, message %s: dropped after %v", s.Aggregate, s.Version, s.MessageID, s.TimeToLive)
		}
	}
	return f
}

// Copied finds messages of a copy, where nothing was there before the relay: before is nil.
// Where events were there, it finds those that came otherwise at first, and what is copied
// once the stream that follows the copy has begun: by the terms, as a message of an old
// term may be late. The sends are in the order of their numbers, each with its stream: a
// topic in partitions has an order in each, and none over all.
func Copied(sends []Send, before map[Event]bool) Findings {
	var f Findings
	type part struct {
		stream    string
		partition int64
	}
	began := make(map[part]int64) // the term in which each stream follows its copy
	came := make(map[Event]bool)
	for i := range sends {
		s := &sends[i]
		of := part{s.Stream, s.Number >> partitionBits}
		term, follows := began[of]
		switch {
		case s.Copied && (before == nil || follows && s.Term >= term):
			f.Add("%s version %d, message %s: its operation is that of a copy", s.Aggregate, s.Version, s.MessageID)
		case !s.Copied && before[s.Event] && !came[s.Event]:
			f.Add("%s version %d, message %s: it was there before, and is not of a copy", s.Aggregate, s.Version, s.MessageID)
		case !s.Copied && !follows:
			began[of] = s.Term
		}
		came[s.Event] = true
	}
	return f
}

// partitionBits are those of a number below the partition of the topic that counts it.
const partitionBits = 48

// SeveralIDs finds events that came under more than one message id, which no
// broker can tell to be repeats.
func SeveralIDs(sends []Send) Findings {
	ids := make(map[Event]string, len(sends))
	var f Findings
	for i := range sends {
		s := &sends[i]
		if first, found := ids[s.Event]; found && first != s.MessageID {
			f.Add("%s version %d came as message %s and as %s", s.Aggregate, s.Version, first, s.MessageID)
			continue
		}
		ids[s.Event] = s.MessageID
	}
	return f
}

// PositionsBack finds events that say they stand before an earlier event of
// their aggregate, where that stands, or nowhere. Of repeats the first one counts: a copy of the
// source gives old events the position of the copy.
func PositionsBack(sends []Send) Findings {
	first := make(map[Event]bool, len(sends))
	var ordered []*Send
	for i := range sends {
		if !first[sends[i].Event] {
			ordered = append(ordered, &sends[i])
		}
		first[sends[i].Event] = true
	}
	slices.SortStableFunc(ordered, func(a, b *Send) int {
		return cmp.Or(cmp.Compare(a.Aggregate, b.Aggregate), cmp.Compare(a.Version, b.Version))
	})
	var f Findings
	var last *Send
	for _, s := range ordered {
		switch {
		case s.Position == 0:
			f.Add("%s version %d has no position", s.Aggregate, s.Version)
		case last != nil && last.Aggregate == s.Aggregate && s.Position < last.Position:
			f.Add("%s version %d stands at %016x, before version %d at %016x", s.Aggregate, s.Version, s.Position, last.Version, last.Position)
		case last != nil && last.Aggregate == s.Aggregate && s.Place == last.Place && !s.Copied && !last.Copied:
			f.Add("%s version %d stands at %016x, where version %d stands", s.Aggregate, s.Version, s.Position, last.Version)
		}
		last = s
	}
	return f
}

// TermsUnclaimed finds messages of terms that no publisher claimed for their stream, or
// for any where that is not known. Those below the first term of the history may have been
// claimed before it begins.
func TermsUnclaimed(sends []Send, history []Checkpoint) Findings {
	claimed := make(map[string]map[int64]bool) // by stream, "" for any
	first := make(map[string]int64)
	for _, c := range history {
		if c.Term == 0 {
			continue // not seen yet: only a claim writes it
		}
		for _, stream := range []string{c.Stream, ""} {
			if claimed[stream] == nil {
				claimed[stream] = make(map[int64]bool)
			}
			claimed[stream][c.Term] = true
			if first[stream] == 0 || c.Term < first[stream] {
				first[stream] = c.Term
			}
		}
	}
	var f Findings
	for i := range sends {
		stream, term := sends[i].Stream, sends[i].Term
		if !claimed[stream][term] && (term >= first[stream] || term < 1) {
			f.Add("%s version %d was sent in term %d, which nobody claimed", sends[i].Aggregate, sends[i].Version, term)
		}
	}
	return f
}
