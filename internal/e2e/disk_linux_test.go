package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"homeagent/messages/api"
	"homeagent/providers/providertest"
)

// smallDisk mounts a disk of its own below a new folder.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := filepath.Dir(shortDir(t))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("HOMEAGENT_CI") == "" {
			t.Skipf("a small disk needs the right to mount one: %v", err)
		}
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "d")
}

// TestFullDisk fills the disk while an answer streams: new input is refused, what runs has no end until it can be
// written, and all goes on by itself when there is room again: the answer that was on its way is given.
func TestFullDisk(t *testing.T) {
	n, v := newNode(t, "--reserve", "67108864"), newVendor(t)
	n.data = smallDisk(t, "192m")
	t.Cleanup(func() {
		if n.cmd != nil {
			n.kill() // before its disk goes
		}
	})
	n.start()
	n.addSource(v, "scripted")
	v.plays(
		providertest.Step{Match: "story", Text: []string{"Once ", "upon a time."}, Hold: providertest.Hold{Middle: "go"}},
		providertest.Step{Text: []string{"Fine."}},
	)
	tape := n.tape("")
	story := n.say("tell me a story")
	v.held("go")
	ballast := filepath.Join(filepath.Dir(n.data), "ballast")
	if err := os.WriteFile(ballast, make([]byte, 140<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		res := n.http(t, "POST", "/api/v1/inputs", `{"text":"how are you?","channel":"cli"}`, n.auth())
		defer res.Body.Close()
		var no api.Error
		if err := json.NewDecoder(res.Body).Decode(&no); err != nil || res.StatusCode != 503 || no.Code != "disk_low" ||
			no.Hint == "" || res.Header.Get("Retry-After") == "" {
			t.Errorf("a full disk is %s, Retry-After %q, %+v %v", res.Status, res.Header.Get("Retry-After"), no, err)
		}
	}
	refused()
	cli := n.waiter("send", "how are you?")
	contains(t, cli.stderr, "disk_low", "Make room")
	if cli.code != 2 {
		t.Errorf("exit %d", cli.code)
	}
	contains(t, n.waiter("status").stdout, "nothing new is taken until there is room")
	v.Open("go")
	v.happens(providertest.Finished, func(e providertest.Event) bool { return e.Request == 2 })
	refused()
	if got := n.input(story); got.End != "" {
		t.Errorf("with a full disk the task ended as %+v", got)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	end := tape.change(story, "ended")
	if e := end.Task; e.End != "answered" || e.Text != "Once upon a time." {
		t.Errorf("the story ended as %+v", e)
	}
	tape.once(story, "ended")
	if got := n.ask("how are you now?"); got.End != "answered" || got.Text != "Fine." {
		t.Errorf("when there is room: %+v", got)
	}
	if got := n.waiter("status"); got.code != 0 {
		t.Errorf("exit %d\n%s", got.code, got.stdout)
	}
	n.stop()
	n.start()
	if got := n.input(story); got.End != end.Task.End || got.Text != end.Task.Text {
		t.Errorf("after a restart: %+v", got)
	}
}
