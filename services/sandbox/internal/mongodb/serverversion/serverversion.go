// Package serverversion says which server is stood in for.
package serverversion

import (
	"fmt"
	"strings"
)

// Version is the server version that is stood in for. It decides what clients
// are told, and which commands, fields and options there are. The zero Version
// is Default.
type Version struct {
	major int
	// full is what clients are told, wire the last wire version that is spoken.
	full string
	wire int32
}

// Default is the one that is stood in for unless another is asked for.
const Default = "8.0"

// versions are those that can be chosen, with the full version they stand for.
var versions = map[string]Version{
	"4.4": {major: 4, full: "4.4.1", wire: 9},
	"5.0": {major: 5, full: "5.0.31", wire: 13},
	"6.0": {major: 6, full: "6.0.25", wire: 17},
	"7.0": {major: 7, full: "7.0.24", wire: 21},
	"8.0": {major: 8, full: "8.0.13", wire: 25},
}

// Parse reads 4.4, 5.0, 6.0, 7.0 or 8.0; empty is Default.
func Parse(name string) (Version, error) {
	if name == "" {
		name = Default
	}
	v, known := versions[name]
	if !known {
		return v, fmt.Errorf("MongoDB version %q is none of 4.4, 5.0, 6.0, 7.0, 8.0", name)
	}
	return v, nil
}

func (v Version) orDefault() Version {
	if v.major == 0 {
		return versions[Default]
	}
	return v
}

// String is the version that clients are told.
func (v Version) String() string { return v.orDefault().full }

// Series is the feature compatibility version.
func (v Version) Series() string {
	parts := strings.Split(v.String(), ".")
	return parts[0] + "." + parts[1]
}

// WireVersion is the last wire version that the server speaks.
func (v Version) WireVersion() int32 { return v.orDefault().wire }

// Has reports that the version has what one has added or changed.
func (v Version) Has(major int) bool { return v.orDefault().major >= major }

// GitCommit stands for the commit that a server was built of.
const GitCommit = "0000000000000000000000000000000000000000"
