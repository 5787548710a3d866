// Package traffic is what a deployed system is tried with: it writes order
// events to the source at a steady rate, and, where asked to, watches the topic
// and the read model meanwhile and judges them as the demo does. It starts and
// stops nothing itself, so it works on any system that it can connect to.
package traffic
