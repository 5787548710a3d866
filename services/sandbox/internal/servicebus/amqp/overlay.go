package amqp

// OverlayApplicationProperties appends the bare message with entries laid over its application properties: those with
// the same key are replaced, the others added. Every other section stays byte for byte as it is.
func OverlayApplicationProperties(b, bare []byte, entries Map) ([]byte, error) {
	if len(entries) == 0 {
		return append(b, bare...), nil
	}
	r := Reader{buf: bare}
	before, after := 0, 0
	var properties Map
	for r.Len() > 0 {
		start := r.pos
		code := r.descriptor()
		if code > descApplicationProperties || r.err != nil {
			break
		}
		if code == descApplicationProperties {
			before = start
			properties = r.Map()
			after = r.pos
			break
		}
		r.Skip()
		before, after = r.pos, r.pos
	}
	if r.err != nil {
		return nil, r.err
	}
	b = append(b, bare[:before]...)
	b = AppendApplicationProperties(b, overlay(properties, entries))
	return append(b, bare[after:]...), nil
}

func overlay(base, entries Map) Map {
	out := make(Map, 0, len(base)+len(entries))
	replaced := make(map[string]bool, len(entries))
	for _, p := range entries {
		key, _ := AsString(p.Key)
		replaced[key] = true
	}
	for _, p := range base {
		if key, ok := AsString(p.Key); ok && replaced[key] {
			continue
		}
		out = append(out, p)
	}
	return append(out, entries...)
}

// CutProperties returns a bare message without its properties section.
func CutProperties(bare []byte) []byte {
	r := Reader{buf: bare}
	if code := r.descriptor(); r.err != nil || code != descProperties {
		return bare
	}
	r.Skip()
	return bare[r.pos:]
}

// CutAnnotations splits the message-annotations section from the front of an encoded message, if it is there.
func CutAnnotations(raw []byte) (annotations Map, rest []byte, err error) {
	if len(raw) < 3 || raw[0] != codeDescribed || raw[1] != codeSmallUlong || raw[2] != descMessageAnnotations {
		return nil, raw, nil
	}
	r := Reader{buf: raw, pos: 3}
	annotations = r.Map()
	return annotations, raw[r.pos:], r.err
}
