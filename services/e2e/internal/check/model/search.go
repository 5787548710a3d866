package model

import (
	"fmt"
	"slices"
)

// machine is a transition system with finitely many states.
type machine[S comparable] struct {
	initial S
	// next emits every state that one step leads to. A promise that a step
	// breaks is given with it, "" where it breaks none.
	next func(from S, emit func(step string, to S, broken string))
	// broken is the promise that a state breaks, or "".
	broken func(S) string
	// done is whether everything that the machine is for has happened. From
	// each state a done one must be reachable, or it is stuck.
	done func(S) bool
}

// finding is what a search found.
type finding struct {
	states int
	broken string   // the promise that can be broken; "" for none
	way    []string // the steps to it, the fewest there are
}

const stuck = "work goes on after any fault"

// visit is a state reached, and how.
type visit struct {
	from int32
	step string
}

// search goes through all states, nearest first, until a promise breaks. It is
// an error when there are more than limit.
func search[S comparable](m machine[S], limit int) (finding, error) {
	states := []S{m.initial}
	visits := []visit{{from: -1}}
	index := map[S]int32{m.initial: 0}
	var edges edges
	var found finding
	for at := 0; at < len(states) && found.broken == ""; at++ {
		from := int32(at)
		if broken := m.broken(states[at]); broken != "" {
			found = finding{broken: broken, way: way(visits, from)}
			break
		}
		m.next(states[at], func(step string, to S, broken string) {
			if broken != "" && found.broken == "" {
				found = finding{broken: broken, way: append(way(visits, from), step)}
			}
			i, known := index[to]
			if !known {
				i = int32(len(states))
				index[to] = i
				states = append(states, to)
				visits = append(visits, visit{from: from, step: step})
			}
			edges.add(from, i)
		})
		if len(states) > limit {
			return finding{}, fmt.Errorf("more than %d states", limit)
		}
	}
	if found.broken == "" {
		if at := edges.without(len(states), func(i int32) bool { return m.done(states[i]) }); at >= 0 {
			found = finding{broken: stuck, way: way(visits, at)}
		}
	}
	found.states = len(states)
	return found, nil
}

// way is the steps from the first state to one.
func way(visits []visit, to int32) []string {
	var back []string
	for ; visits[to].from >= 0; to = visits[to].from {
		back = append(back, visits[to].step)
	}
	steps := make([]string, 0, len(back)+1)
	for _, step := range slices.Backward(back) {
		steps = append(steps, step)
	}
	return steps
}

// edges are the steps of a search, in pairs.
type edges struct{ from, to []int32 }

func (e *edges) add(from, to int32) {
	e.from = append(e.from, from)
	e.to = append(e.to, to)
}

// without is the first state from which no goal is reachable, or -1.
func (e *edges) without(states int, goal func(int32) bool) int32 {
	// The predecessors of a state are heads[state:state+1] of tails.
	heads := make([]int32, states+2)
	for _, to := range e.to {
		heads[to+2]++
	}
	for i := 2; i < len(heads); i++ {
		heads[i] += heads[i-1]
	}
	tails := make([]int32, len(e.from))
	for i, to := range e.to {
		tails[heads[to+1]] = e.from[i]
		heads[to+1]++
	}
	reaches := make([]bool, states)
	var open []int32
	for i := range int32(states) {
		if goal(i) {
			reaches[i] = true
			open = append(open, i)
		}
	}
	for len(open) > 0 {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		for _, from := range tails[heads[at]:heads[at+1]] {
			if !reaches[from] {
				reaches[from] = true
				open = append(open, from)
			}
		}
	}
	for i, reached := range reaches {
		if !reached {
			return int32(i)
		}
	}
	return -1
}
