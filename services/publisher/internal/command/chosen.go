package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"changerelay/services/publisher/internal/cli"
	"changerelay/services/publisher/internal/mongostate"
)

// allPartitions as the value of --partition is every one of them.
const allPartitions = "all"

// chosen are the checkpoints that the command is about, and those that it leaves
// alone, which may be led meanwhile. Where only some partitions are halted and
// nothing else is said, it is about those, and says so. What has no place to accept
// stays halted beside what has one.
func (d *deciding) chosen() (names, leftAlone []string, err error) {
	all := mongostate.PartitionNames(d.call.Config.StreamName, d.call.Config.Partitions)
	halted := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !d.scope.Halted(name) })
	number, err := strconv.Atoi(d.partition)
	switch {
	case d.together != nil && d.partition != "" && d.partition != allPartitions:
		return nil, nil, cli.Usagef("--partition is %q, and with these settings partitions carry other aggregates than they did: it is about all of them", d.partition)
	case d.partition == allPartitions, d.together != nil, d.partition == "" && len(halted) == 0:
		names = all
	case d.partition == "":
		if names = d.acceptable(halted); len(names) == 0 {
			names = halted
		}
	case err != nil || number < 0 || number >= len(all):
		return nil, nil, cli.Usagef("--partition is %q, neither %s nor one of 0 to %d", d.partition, allPartitions, len(all)-1)
	default:
		names = all[number : number+1]
	}
	leftAlone = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
	if d.partition != "" || len(leftAlone) == 0 {
		return names, leftAlone, nil
	}
	said := fmt.Sprintf("of %d partitions only %s wait for a decision, and it is about those alone; --partition N or %s says otherwise\n",
		len(all), strings.Join(names, ", "), allPartitions)
	if len(names) < len(halted) {
		said = d.otherDecisions(all, halted)
	}
	_, err = fmt.Fprint(d.call.Stderr, said)
	return names, leftAlone, err
}

// otherDecisions says what to do about the halted partitions that have no place to accept.
func (d *deciding) otherDecisions(all, halted []string) string {
	var said strings.Builder
	for i, name := range all {
		if slices.Contains(halted, name) && len(d.acceptable([]string{name})) == 0 {
			fmt.Fprintf(&said, "%s has no place to accept and stays halted: decide about it with publisher checkpoint set PLACE --partition %d --why TEXT "+
				"or publisher checkpoint reset --partition %d --why TEXT\n", name, i, i)
		}
	}
	return said.String()
}

// acceptable are those of the named checkpoints about which an action can decide: to
// accept takes a place that is there.
func (d *deciding) acceptable(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return d.action == mongostate.Accept && !d.scope.Checkpoints[name].Pinned()
	})
}
