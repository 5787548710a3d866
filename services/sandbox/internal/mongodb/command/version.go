package command

import (
	"fmt"
	"strings"
)

// Version is the server version that is stood in for. It decides what clients
// are told, and which commands, fields and options there are. The zero Version
// says that it is 4.4.1 and has what later versions added as well.
type Version struct {
	major int
	// full is what clients are told, wire the last wire version that is spoken.
	full string
	wire int32
}

// versions are those that can be chosen, with the full version they stand for.
var versions = map[string]Version{
	"4.4": {major: 4, full: "4.4.1", wire: 9},
	"5.0": {major: 5, full: "5.0.31", wire: 13},
	"6.0": {major: 6, full: "6.0.25", wire: 17},
	"7.0": {major: 7, full: "7.0.24", wire: 21},
	"8.0": {major: 8, full: "8.0.13", wire: 25},
}

// ParseVersion reads 4.4, 5.0, 6.0, 7.0 or 8.0; empty is the zero Version.
func ParseVersion(name string) (Version, error) {
	if name == "" {
		return Version{}, nil
	}
	v, known := versions[name]
	if !known {
		return v, fmt.Errorf("MongoDB version %q is none of 4.4, 5.0, 6.0, 7.0, 8.0", name)
	}
	return v, nil
}

// String is the version that clients are told.
func (v Version) String() string {
	if v.full == "" {
		return versions["4.4"].full
	}
	return v.full
}

// Series is the feature compatibility version.
func (v Version) Series() string {
	parts := strings.Split(v.String(), ".")
	return parts[0] + "." + parts[1]
}

// WireVersion is the last wire version that the server speaks.
func (v Version) WireVersion() int32 {
	if v.wire == 0 {
		return versions["4.4"].wire
	}
	return v.wire
}

// Has reports that the version has what one has added.
func (v Version) Has(major int) bool { return v.major == 0 || v.major >= major }

// Since reports that the version was chosen, and has changed what one has
// changed for clients of before.
func (v Version) Since(major int) bool { return v.major >= major }

// GitVersion stands for the commit that a server was built of.
const GitVersion = "0000000000000000000000000000000000000000"
