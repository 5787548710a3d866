package validate

import (
	"hash/fnv"
	"regexp"
	"strconv"
)

// partitionName matches the end of the name of one partition of several.
var partitionName = regexp.MustCompile(`-([0-9]+)of([0-9]+)$`)

// Carries says whether a stream of that name carries an aggregate: the whole does, and of
// its partitions the one to which the aggregate's hash assigns it.
func Carries(stream, aggregate string) bool {
	name := partitionName.FindStringSubmatch(stream)
	if name == nil {
		return true
	}
	index, _ := strconv.ParseUint(name[1], 10, 64)
	partitions, _ := strconv.ParseUint(name[2], 10, 64)
	h := fnv.New64a()
	_, _ = h.Write([]byte(aggregate))
	return partitions > 0 && h.Sum64()%partitions == index
}

// InStreams puts each send on the stream that carries its aggregate, of those in the
// history, and returns them. Where several do, as after a repartition, it is not known.
func InStreams(sends []Send, history []Checkpoint) []Send {
	streams := make(map[string]bool)
	for _, c := range history {
		streams[c.Stream] = true
	}
	of := make(map[string]string) // by aggregate
	for i := range sends {
		aggregate := sends[i].Aggregate
		if _, known := of[aggregate]; !known {
			of[aggregate] = carrierOf(aggregate, streams)
		}
		sends[i].Stream = of[aggregate]
	}
	return sends
}

// carrierOf is the only one of the streams that carries an aggregate, or "".
func carrierOf(aggregate string, streams map[string]bool) string {
	carrier := ""
	for stream := range streams {
		if !Carries(stream, aggregate) {
			continue
		}
		if carrier != "" {
			return ""
		}
		carrier = stream
	}
	return carrier
}
