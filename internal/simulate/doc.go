// Command simulate runs whole nodes under a seed each and checks what must hold after every step.
//
// A run is: a plan of what people do and what goes wrong, made from the seed; the machines of the node, the very same that
// the kernel starts, on the host of package host; the disk of package disk below the ledger; and around them a scripted
// vendor, tools and channels whose memory is outside of the node, so that it survives crashes and can tell what happened
// twice or never. What the vendor says depends on the task and the round alone, never on the prompt, so that it is known what
// each task must come to, whatever disturbed it.
//
//	go run ./internal/simulate -seeds 10000 [-from S] [-steps N] [-budget 3m] [-workers 2] [-v]
//
// It exits 0 only when every seed held. On a violation it leaves out what people did and what went wrong as long as the
// same thing is still violated, and prints the seed, the invariant, what is left of the plan and the transcript.
package main
