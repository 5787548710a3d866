package input

import (
	"fmt"
	"strings"
)

// Fields says which field of the lines, or column of a table, is which part of an
// event.
type Fields map[string]string

// ParseFields reads aggregateId=orderId,type=activity,time=timestamp.
func ParseFields(text string) (Fields, error) {
	if text == "" {
		return nil, nil
	}
	f := Fields{}
	for pair := range strings.SplitSeq(text, ",") {
		part, name, found := strings.Cut(pair, "=")
		if _, known := usual[part]; !known || !found || name == "" {
			return nil, fmt.Errorf("%q: want aggregateId=NAME,type=NAME,time=NAME and, if there are such, version=NAME and data=NAME", pair)
		}
		f[part] = name
	}
	return f, nil
}
