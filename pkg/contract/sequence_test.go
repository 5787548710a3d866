package contract_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"changerelay/pkg/contract"
)

// place is where a change stands: the order of the fields is the order of the stream.
type place struct {
	seconds, increment uint32
	txnIndex           uint16 // place inside a transaction
	key                uint64
}

// token writes a resume token as MongoDB does, in its KeyString format: type
// timestamp (82) with the cluster time, then as numbers the token's version 1,
// its kind 128 (an event) and the index within a transaction, then false, the
// collection's UUID and the document's key.
func (p place) token() string {
	return fmt.Sprintf("82%08X%08X2B022C0100%s6E5A1004D0C1B0B6E7C94A1F8C5B3A0E8E1F2A3B46645F69640064%016X0000000004",
		p.seconds, p.increment, keyStringNumber(p.txnIndex), p.key)
}

// keyStringNumber writes a small number so that numbers compare bytewise: 29
// for 0, then 2B and up with as many bytes as it takes, shifted left by one.
func keyStringNumber(n uint16) string {
	switch {
	case n == 0:
		return "29"
	case n < 1<<7:
		return fmt.Sprintf("2B%02X", n<<1)
	}
	return fmt.Sprintf("2C%04X", n<<1)
}

func (p place) position() contract.Position {
	return contract.StreamPosition(p.seconds, p.increment, p.token())
}

func randomPlace(random *rand.Rand) place {
	// Few seconds and increments, so that many places differ only in what follows.
	return place{
		seconds:   1_763_800_000 + random.Uint32N(3)<<random.Uint32N(28),
		increment: 1 + random.Uint32N(3)<<random.Uint32N(28),
		txnIndex:  uint16(random.Uint32N(1 << random.Uint32N(15))),
	}
}

func TestSequence_ALaterStreamPositionSortsHigher(t *testing.T) {
	t.Parallel()
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	for range 20_000 {
		a, b := randomPlace(random), randomPlace(random)
		want := cmp.Or(cmp.Compare(a.seconds, b.seconds), cmp.Compare(a.increment, b.increment), cmp.Compare(a.txnIndex, b.txnIndex))
		sequenceA := contract.SequenceOf(contract.Version{}, a.position())
		sequenceB := contract.SequenceOf(contract.Version{}, b.position())
		if got := strings.Compare(string(sequenceA), string(sequenceB)); got != want {
			t.Fatalf("seed %d: %+v to %+v compare %d by sequence, want %d:\n%s\n%s", seed, a, b, got, want, sequenceA, sequenceB)
		}
	}
}

func TestSequence_ASnapshotPositionSortsBelowTheStreamOfItsTime(t *testing.T) {
	t.Parallel()
	const seed = 2
	random := rand.New(rand.NewPCG(seed, seed))
	counters := []uint64{0, 1, 9, 10, 15, 16, math.MaxUint32, math.MaxInt64}
	for range 2_000 {
		p := randomPlace(random)
		for _, n := range append(counters, random.Uint64N(math.MaxInt64)) {
			if snapshot := contract.SnapshotPosition(p.seconds, p.increment, n); snapshot >= p.position() {
				t.Fatalf("seed %d: snapshot position %s of document %d does not sort below %s", seed, snapshot, n, p.position())
			}
		}
	}
}

func TestSequence_SnapshotPositionsSortAsTheyAreCounted(t *testing.T) {
	t.Parallel()
	previous := contract.SnapshotPosition(1, 1, 0)
	for _, n := range []uint64{1, 9, 10, 15, 16, 255, 256, 1 << 32, math.MaxInt64} {
		next := contract.SnapshotPosition(1, 1, n)
		if next <= previous {
			t.Errorf("document %d: %s does not sort above %s", n, next, previous)
		}
		previous = next
	}
}

func TestSequence_VersionsSortAsNumbers(t *testing.T) {
	t.Parallel()
	const seed = 3
	random := rand.New(rand.NewPCG(seed, seed))
	versions := []int64{0, 1, 9, 10, 99, 100, 999_999_999, 1_000_000_000_000_000_000, math.MaxInt64 - 1, math.MaxInt64}
	for range 5_000 {
		versions = append(versions, random.Int64N(math.MaxInt64)>>random.Int64N(63))
	}
	slices.Sort(versions)
	for i, v := range versions {
		sequence := contract.SequenceOf(contract.VersionOf(v), "")
		if len(sequence) != 19 {
			t.Fatalf("version %d: sequence %q has %d characters, want 19", v, sequence, len(sequence))
		}
		lower := contract.SequenceOf(contract.VersionOf(versions[max(i-1, 0)]), "")
		if got, want := cmp.Compare(lower, sequence), cmp.Compare(versions[max(i-1, 0)], v); got != want {
			t.Fatalf("seed %d: %q to %q compare %d, want %d as %d to %d", seed, lower, sequence, got, want, versions[max(i-1, 0)], v)
		}
	}
}

func TestSequence_SequenceAndPositionAreWrittenAsDocumented(t *testing.T) {
	t.Parallel()
	stream := contract.StreamPosition(0x6921d1e1, 10, "82AB")
	tests := []struct{ name, got, want string }{
		{"a stream position is cluster time, dot, token", string(stream), "6921d1e10000000a.82AB"},
		{"a snapshot position has a counter for a token", string(contract.SnapshotPosition(1, 2, 255)), "0000000100000002.00000000000000FF"},
		{"a long token is kept whole", string(contract.StreamPosition(0, 1, strings.Repeat("8", 999))), "0000000000000001." + strings.Repeat("8", 999)},
		{"a sequence is the padded version", string(contract.SequenceOf(contract.VersionOf(42), stream)), "0000000000000000042"},
		{"version 0 is a version", string(contract.SequenceOf(contract.VersionOf(0), stream)), "0000000000000000000"},
		{"a sequence without version is the position", string(contract.SequenceOf(contract.Version{}, stream)), string(stream)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.got != tt.want {
				t.Errorf("got %q, want %q", tt.got, tt.want)
			}
		})
	}
}

func TestSequence_ClusterTimeIsReadFromAPosition(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string
		position           contract.Position
		seconds, increment uint32
		problem            []string
	}{
		{name: "a stream position", position: contract.StreamPosition(1_763_824_097, 7, "82AB"), seconds: 1_763_824_097, increment: 7},
		{name: "the highest cluster time", position: contract.StreamPosition(math.MaxUint32, math.MaxUint32, "82"), seconds: math.MaxUint32, increment: math.MaxUint32},
		{name: "no position", position: "", problem: []string{"position is empty"}},
		{name: "no hex", position: "zzzzzzzzzzzzzzzz.82", problem: []string{"position has a cluster time that is not lower-case hex"}},
		{name: "a version for a position", position: "0000000000000000042", problem: []string{"position is not 16 hex digits, a dot and a token"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			seconds, increment, err := tt.position.ClusterTime()
			if seconds != tt.seconds || increment != tt.increment {
				t.Errorf("got %d, %d, want %d, %d", seconds, increment, tt.seconds, tt.increment)
			}
			checkProblems(t, err, tt.problem...)
		})
	}
}
