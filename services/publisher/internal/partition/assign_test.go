package partition_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"changerelay/services/publisher/internal/partition"
)

func TestAssign_AnAggregateStaysInItsPartition(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{"": 2, "order-000001": 6, "order-000002": 4, "65539f000102030405060708": 6, "Ω": 5} {
		if got := partition.Of(id, 7); got != want {
			t.Errorf("Of(%q, 7) = %d, want %d: checkpoints rest on it", id, got, want)
		}
	}
}

func TestAssign_AggregatesAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	const aggregates, partitions = 20_000, 8
	var counts [partitions]int
	for n := range aggregates {
		counts[partition.Of(fmt.Sprintf("order-%06d", n), partitions)]++
	}
	for i, count := range counts {
		if count < aggregates/partitions*8/10 || count > aggregates/partitions*12/10 {
			t.Errorf("partition %d has %d of %d aggregates", i, count, aggregates)
		}
	}
}

func TestAssign_EveryPictureIsDividedEvenlyWithTheFewestMoves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-f]`), 1, 6, rapid.ID[string]).Draw(t, "members")
		snapshot := partition.Snapshot{
			Members: members,
			Holders: rapid.SliceOfN(rapid.StringMatching(`[a-h]?`), 1, 12).Draw(t, "holders"),
		}
		assigned := partition.Assign(snapshot)
		var all []int
		least, most := len(snapshot.Holders)/len(members), (len(snapshot.Holders)+len(members)-1)/len(members)
		for _, m := range members {
			mine := assigned[m]
			all = append(all, mine...)
			if len(mine) < least || len(mine) > most {
				t.Fatalf("%s gets %v of %d among %d", m, mine, len(snapshot.Holders), len(members))
			}
			held, kept := 0, 0
			for p, holder := range snapshot.Holders {
				if holder == m {
					held++
					if slices.Contains(mine, p) {
						kept++
					}
				}
			}
			if kept < min(held, least) || held <= len(mine) && kept != held {
				t.Fatalf("%s held %d and keeps %d of them, gets %v", m, held, kept, mine)
			}
		}
		slices.Sort(all)
		for p := range snapshot.Holders {
			if len(all) != len(snapshot.Holders) || all[p] != p {
				t.Fatalf("divided are %v, want each of %d once", all, len(snapshot.Holders))
			}
		}
		// When everybody has what is theirs, nobody moves.
		settled := partition.Snapshot{Members: members, Holders: make([]string, len(snapshot.Holders))}
		for m, mine := range assigned {
			for _, p := range mine {
				settled.Holders[p] = m
			}
		}
		if again := partition.Assign(settled); !maps.EqualFunc(again, assigned, sameSet) {
			t.Fatalf("%v becomes %v once it is settled", assigned, again)
		}
	})
}

// TestAssign_APartitionGoesToWhoDoesNotStandAsideFromIt draws who stands aside from what.
func TestAssign_APartitionGoesToWhoDoesNotStandAsideFromIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		snapshot := partition.Snapshot{
			Members: rapid.SliceOfNDistinct(rapid.StringMatching(`[a-f]`), 1, 6, rapid.ID[string]).Draw(t, "members"),
			Holders: rapid.SliceOfN(rapid.StringMatching(`[a-h]?`), 1, 12).Draw(t, "holders"),
			Aside:   rapid.MapOf(rapid.StringMatching(`[a-f]`), rapid.SliceOf(rapid.IntRange(0, 11))).Draw(t, "aside"),
		}
		owners := make([]string, len(snapshot.Holders))
		assigned := partition.Assign(snapshot)
		for m, mine := range assigned {
			for _, p := range mine {
				if owners[p] != "" {
					t.Fatalf("partition %d is given to %s and %s", p, owners[p], m)
				}
				owners[p] = m
			}
		}
		for p, owner := range owners {
			fitting := slices.DeleteFunc(slices.Clone(snapshot.Members), func(m string) bool { return slices.Contains(snapshot.Aside[m], p) })
			if owner == "" || len(fitting) > 0 && !slices.Contains(fitting, owner) {
				t.Fatalf("partition %d is given to %q, want one of %q", p, owner, fitting)
			}
			for _, m := range fitting {
				if len(assigned[owner]) > len(assigned[m])+1 {
					t.Fatalf("%s has %v, and %s, which may have %d, has %v", owner, assigned[owner], m, p, assigned[m])
				}
			}
		}
		settled := snapshot
		settled.Holders = owners
		if again := partition.Assign(settled); !maps.EqualFunc(again, assigned, sameSet) {
			t.Fatalf("%v becomes %v once it is settled", assigned, again)
		}
	})
}

func sameSet(a, b []int) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
