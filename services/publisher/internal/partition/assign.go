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

// Snapshot is which instances are there, and which partitions they hold.
type Snapshot struct {
	// Members are the instances that announced themselves.
	Members []string
	// Aside are the partitions that a member stands aside from.
	Aside map[string][]int
	// Holders are the holders by partition, empty where there is none.
	Holders []string
}

// Assign divides the partitions among the members: each gets the same number, or one
// more, and keeps what it holds as far as possible. None gets a partition that it stands
// aside from, unless all do; the numbers are then as even as single moves make them.
func Assign(p Snapshot) map[string][]int {
	members := slices.Compact(slices.Sorted(slices.Values(p.Members)))
	if len(members) == 0 {
		return nil
	}
	assigned := make(map[string][]int, len(members))
	for _, m := range members {
		assigned[m] = nil
	}
	may := p.eligible(members)
	// The first of them in order of their names, where several hold as few.
	least := func(partition int) string {
		return slices.MinFunc(may[partition], func(a, b string) int { return cmp.Compare(len(assigned[a]), len(assigned[b])) })
	}
	var pool []int
	for partition, holder := range p.Holders {
		if slices.Contains(may[partition], holder) {
			assigned[holder] = append(assigned[holder], partition)
		} else {
			pool = append(pool, partition)
		}
	}
	for _, partition := range pool {
		m := least(partition)
		assigned[m] = append(assigned[m], partition)
	}
	for level(members, assigned, least) {
	}
	return assigned
}

// eligible are the members that may get each partition.
func (p Snapshot) eligible(members []string) [][]string {
	may := make([][]string, len(p.Holders))
	for partition := range may {
		may[partition] = slices.DeleteFunc(slices.Clone(members), func(m string) bool { return slices.Contains(p.Aside[m], partition) })
		if len(may[partition]) == 0 {
			may[partition] = members
		}
	}
	return may
}

// level moves one partition from a member that has at least two more than who may
// get it, and reports whether there was one.
func level(members []string, assigned map[string][]int, least func(partition int) string) bool {
	most := slices.SortedStableFunc(slices.Values(members), func(a, b string) int { return cmp.Compare(len(assigned[b]), len(assigned[a])) })
	for _, from := range most {
		for i, partition := range slices.Backward(assigned[from]) {
			if to := least(partition); len(assigned[from]) > len(assigned[to])+1 {
				assigned[from] = slices.Delete(assigned[from], i, i+1)
				assigned[to] = append(assigned[to], partition)
				return true
			}
		}
	}
	return false
}
