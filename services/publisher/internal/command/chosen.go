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
// nothing else is said, it is about those, and says so.
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
		names = halted
	case err != nil || number < 0 || number >= len(all):
		return nil, nil, cli.Usagef("--partition is %q, neither %s nor one of 0 to %d", d.partition, allPartitions, len(all)-1)
	default:
		names = all[number : number+1]
	}
	leftAlone = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
	if d.partition == "" && len(leftAlone) > 0 {
		_, err = fmt.Fprintf(d.call.Stderr, "of %d partitions only %s wait for a decision, and it is about those alone; --partition N or %s says otherwise\n",
			len(all), strings.Join(names, ", "), allPartitions)
		return names, leftAlone, err
	}
	return names, leftAlone, nil
}
