package providers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// The tools with which a model that takes no pictures or sound asks another one.
// They stay in a request only while it has content that its source does not take.
const (
	ToolDescribeImage   = "describe_image"
	ToolOCRImage        = "ocr_image"
	ToolTranscribeAudio = "transcribe_audio"
)

// defaultPictures are the limits of a client without others.
var defaultPictures = PictureLimits{Bytes: 20 << 20, Pixels: 50_000_000, Edge: 2048}

// media loads what the source takes into req, and leaves the tools that help with
// the rest. A picture that cannot be taken stays out: the model is told of it in
// words, as of all that it does not get.
func (r *run) media(ctx context.Context, info Info, req *Request) error {
	req.Media = make(map[string][]byte)
	pending := make(map[string]bool)
	types := make(map[string]string)
	for _, m := range req.Messages {
		for _, p := range m.GetParts() {
			ref := p.GetPayload()
			if ref == nil || req.Media[ref.GetId()] != nil {
				continue
			}
			kind, _, _ := strings.Cut(ref.GetMediaType(), "/")
			if r.c.o.Media == nil || !takes(r.src, info, ref.GetMediaType()) {
				pending[kind] = true
				continue
			}
			data, mediaType, err := r.c.load(ctx, ref)
			switch {
			case errors.Is(err, ErrPicture):
				r.c.o.Log.Warn("a picture is not shown to the model", "payload", ref.GetId(), "error", err)
				pending[kind] = true
			case err != nil:
				return r.fail(messages.ErrorKind_ERROR_KIND_INVALID_REQUEST, "a media part of the request cannot be read", err)
			default:
				req.Media[ref.GetId()] = data
				if mediaType != ref.GetMediaType() {
					types[ref.GetId()] = mediaType
				}
			}
		}
	}
	retype(req.CompletionRequest, types)
	req.Tools = slices.DeleteFunc(req.Tools, func(t *messages.ToolDef) bool {
		switch t.GetName() {
		case ToolDescribeImage, ToolOCRImage:
			return !pending["image"]
		case ToolTranscribeAudio:
			return !pending["audio"]
		}
		return false
	})
	return nil
}

// retype notes the media types of pictures that were made anew. The list of
// messages is the request's own, its messages are not.
func retype(q *messages.CompletionRequest, types map[string]string) {
	if len(types) == 0 {
		return
	}
	for i, m := range q.Messages {
		if !slices.ContainsFunc(m.GetParts(), func(p *messages.Part) bool { return types[p.GetPayload().GetId()] != "" }) {
			continue
		}
		m = proto.CloneOf(m)
		for _, p := range m.GetParts() {
			if t := types[p.GetPayload().GetId()]; t != "" {
				p.GetPayload().MediaType = t
			}
		}
		q.Messages[i] = m
	}
}

// load gives a payload as a model gets it.
func (c *Client) load(ctx context.Context, ref *messages.PayloadRef) ([]byte, string, error) {
	if !strings.HasPrefix(ref.GetMediaType(), "image/") {
		data, err := c.o.Media(ctx, ref)
		return data, ref.GetMediaType(), err
	}
	limits := defaultPictures
	if c.o.Pictures != nil {
		limits = c.o.Pictures()
	}
	if p, ok := c.pictures.get(ref.GetId(), limits); ok {
		return p.data, p.mediaType, nil
	}
	data, err := c.o.Media(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	data, mediaType, err := FitPicture(data, limits)
	if err == nil {
		c.pictures.put(picture{ref.GetId(), limits, data, mediaType})
	}
	return data, mediaType, err
}

// picture is one as a model gets it.
type picture struct {
	id        string
	limits    PictureLimits
	data      []byte
	mediaType string
}

// Bounds of what is kept of pictures: every round of a turn sends them again.
const (
	maxPictures     = 16
	maxPictureBytes = 16 << 20
)

// album keeps the pictures that were used last. Safe for concurrent use.
type album struct {
	mu    sync.Mutex
	last  []picture // the one used last at the end
	bytes int
}

func (a *album) get(id string, l PictureLimits) (picture, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.last, func(p picture) bool { return p.id == id && p.limits == l })
	if i < 0 {
		return picture{}, false
	}
	p := a.last[i]
	a.last = append(slices.Delete(a.last, i, i+1), p)
	return p, true
}

func (a *album) put(p picture) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last, a.bytes = append(a.last, p), a.bytes+len(p.data)
	for len(a.last) > maxPictures || len(a.last) > 0 && a.bytes > maxPictureBytes {
		a.bytes -= len(a.last[0].data)
		a.last = slices.Delete(a.last, 0, 1)
	}
}
