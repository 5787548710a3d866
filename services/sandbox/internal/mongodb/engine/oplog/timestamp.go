package oplog

import (
	"strconv"
	"time"
)

// Timestamp is a cluster time: seconds since 1970 in the upper half and an
// increment within the second in the lower, so timestamps compare as numbers.
type Timestamp uint64

// NewTimestamp puts a cluster time together.
func NewTimestamp(seconds, increment uint32) Timestamp {
	return Timestamp(uint64(seconds)<<32 | uint64(increment))
}

// Seconds is the wall clock part, seconds since 1970.
func (t Timestamp) Seconds() uint32 { return uint32(t >> 32) }

// Increment counts the operations within one second, from 1.
func (t Timestamp) Increment() uint32 { return uint32(t) }

func (t Timestamp) String() string {
	return strconv.FormatUint(uint64(t.Seconds()), 10) + "." + strconv.FormatUint(uint64(t.Increment()), 10)
}

// Next gives the cluster time of an operation after t: the wall clock's second
// when it has moved on, else one increment more. A wall clock set back never
// makes cluster time go back.
func (t Timestamp) Next(now time.Time) Timestamp {
	if seconds := uint32(now.Unix()); seconds > t.Seconds() {
		return NewTimestamp(seconds, 1)
	}
	return t + 1
}
