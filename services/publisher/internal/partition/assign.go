package partition

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Of returns the partition, from 0 to n-1, of an aggregate. It never changes:
// checkpoints rest on it.
func Of(aggregateID string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(aggregateID)) // never fails
	return int(h.Sum64() % uint64(n))
}

// Picture is who is there, and who holds what.
type Picture struct {
	// Members are the instances that announced themselves.
	Members []string
	// Holders are the holders by partition, empty where there is none.
	Holders []string
}

// Assign divides the partitions among the members: each gets the same number,
// or one more, and keeps what it holds as far as that goes. Members that hold
// more have the first claim on one more.
func Assign(p Picture) map[string][]int {
	members := slices.Compact(slices.Sorted(slices.Values(p.Members)))
	if len(members) == 0 {
		return nil
	}
	assigned := make(map[string][]int, len(members))
	for _, m := range members {
		assigned[m] = nil
	}
	var pool []int
	for partition, holder := range p.Holders {
		if _, present := assigned[holder]; present {
			assigned[holder] = append(assigned[holder], partition)
		} else {
			pool = append(pool, partition)
		}
	}
	slices.SortStableFunc(members, func(a, b string) int { return cmp.Compare(len(assigned[b]), len(assigned[a])) })
	target := func(rank int) int {
		share := len(p.Holders) / len(members)
		if rank < len(p.Holders)%len(members) {
			share++
		}
		return share
	}
	for rank, m := range members {
		if most := target(rank); len(assigned[m]) > most {
			pool = append(pool, assigned[m][most:]...)
			assigned[m] = assigned[m][:most]
		}
	}
	slices.Sort(pool)
	for rank, m := range members {
		lacks := target(rank) - len(assigned[m])
		assigned[m] = append(assigned[m], pool[:lacks]...)
		pool = pool[lacks:]
	}
	return assigned
}
