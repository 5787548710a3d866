package chaos

import (
	"regexp"
	"slices"
	"strings"
)

// named matches a command of the publisher where a sentence tells to run it, and
// what follows it.
var named = regexp.MustCompile(`publisher (repartition|checkpoint (?:set|reset|accept))\b(.*)`)

// adviceIn returns the arguments of the first command that a text tells to run;
// nil where it names none. One with a blank in capitals, such as PLACE, is not
// guessed at. A command that moves checkpoints is given a reason, which it asks
// for and only a person can give.
func adviceIn(text string) []string {
	for len(text) > 0 {
		match := named.FindStringSubmatchIndex(text)
		if match == nil {
			return nil
		}
		args := strings.Fields(text[match[2]:match[3]])
		more, blank := arguments(text[match[4]:match[5]])
		text = text[match[3]:]
		if blank {
			continue
		}
		args = append(args, more...)
		if args[0] == "checkpoint" && !slices.Contains(args, "--why") {
			args = append(args, "--why", "chaos")
		}
		return args
	}
	return nil
}

// arguments takes the arguments off the front of a sentence: flags with their
// values, and words with a digit in them. It says whether one is a blank.
func arguments(sentence string) (args []string, blank bool) {
	for word := range strings.FieldsSeq(sentence) {
		argument := strings.TrimRight(word, "\\\"`;,.)")
		value := len(args) > 0 && args[len(args)-1] == "--why"
		switch {
		case value:
			argument = "chaos"
		case argument != "" && strings.Trim(argument, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "":
			return nil, true
		case !strings.HasPrefix(argument, "--") && !strings.ContainsAny(argument, "0123456789"):
			return args, false
		}
		if argument != "" {
			args = append(args, argument)
		}
		if argument != word && !value || value && strings.ContainsAny(word, "\"`;,.)") {
			return args, false // the end of the sentence, or of what is quoted
		}
	}
	return args, false
}
