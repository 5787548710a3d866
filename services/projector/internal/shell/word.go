// Package shell writes words as a shell reads them, for commands that are printed to be copied and
// run. What is in them comes from elsewhere, such as the ids of aggregates.
package shell

import "strings"

// plain are the characters of words that every shell takes as they are.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+@:,./"

// Word is a word of a command line: in quotes where a shell would take it for anything else.
func Word(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
