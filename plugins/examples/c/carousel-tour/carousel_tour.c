// Shows all pictures of the carousels and slideshows of a page. Scripts load a picture when it is first shown. Many carousels
// start again after the last picture, so the plugin clicks "next" until clicks cause no further requests.

#include <opilio.h>

static const char settings_schema[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"next\": {\"type\": \"string\", \"default\": \".carousel-control-next, .slick-next:not(.slick-disabled),"
    " .swiper-button-next:not(.swiper-button-disabled), .splide__arrow--next:not([disabled]),"
    " .flickity-button.next:not([disabled]), .glide__arrow--right\","
    " \"description\": \"CSS selector of the buttons that show the next picture.\", \"x-opilio-overridable\": true},"
    "\"clicks-max\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 10000, \"default\": 60,"
    " \"description\": \"Maximum number of clicks on each button.\", \"x-opilio-overridable\": true},"
    "\"patience\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 100, \"default\": 3,"
    " \"description\": \"Clicks without further requests after which a page counts as complete.\","
    " \"x-opilio-overridable\": true}}}";

// Carousels of a page that are turned at the same time, and the longest wait for their pictures in milliseconds.
enum { CAROUSELS_MAX = 20, PICTURES_WAIT_MAX = 3000 };

// The browser lists 250 requests of a page unless a script raises the limit. Beacons and repeated requests do not count: a
// carousel also makes them for pictures that it has shown before.
static const char raise_limit[] = "performance.setResourceTimingBufferSize(10000);";
static const char count_requests[] =
    "const requests = performance.getEntriesByType('resource').filter((entry) => entry.initiatorType !== 'beacon');"
    " return new Set(requests.map((entry) => entry.name)).size;";

// Steps that come before the first click has a result.
enum { STEP_OF_COUNT = 0, STEP_OF_FIRST_CLICK = 1 };

typedef struct {
  opilio_text next;
  uint32_t clicks_max;
  uint32_t patience;
} carousel_tour;

// The memory of a step: a list of three numbers in JSON.
typedef struct {
  uint32_t clicks;
  // Number of different requests after the last click, and number of clicks since it last grew.
  uint32_t requests;
  uint32_t idle_clicks;
} tour;

static void *configure(const opilio_json *settings, opilio_faults *faults) {
  carousel_tour *self = opilio_memory(sizeof *self);
  self->next = opilio_json_text(opilio_json_member(settings, "next"), OPILIO_TEXT(""));
  self->clicks_max = (uint32_t)opilio_json_number(opilio_json_member(settings, "clicks-max"), 60);
  self->patience = (uint32_t)opilio_json_number(opilio_json_member(settings, "patience"), 3);
  if (self->next.len == 0) opilio_fault(faults, OPILIO_TEXT("/next"), OPILIO_TEXT("is empty; write a CSS selector"));
  return self;
}

static tour parse_memory(opilio_bytes memory) {
  const opilio_json *list = opilio_json_read((opilio_text){(const char *)memory.ptr, memory.len});
  return (tour){
      .clicks = (uint32_t)opilio_json_number(opilio_json_item(list, 0), 0),
      .requests = (uint32_t)opilio_json_number(opilio_json_item(list, 1), 0),
      .idle_clicks = (uint32_t)opilio_json_number(opilio_json_item(list, 2), 0),
  };
}

static void remember(opilio_step_plan *out, tour now) {
  opilio_text text = opilio_format("[%u,%u,%u]", now.clicks, now.requests, now.idle_clicks);
  opilio_remember_for_step(out, (opilio_bytes){(const uint8_t *)text.ptr, text.len});
}

// Returns the number in the result of a script. The page can change the result, so other values count as 0.
static uint32_t number(opilio_action_result result) {
  if (result.kind != OPILIO_RESULT_VALUE) return 0;
  double value = opilio_json_number(opilio_json_read(result.text), 0);
  return value >= 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

static void turn(const carousel_tour *self, tour now, opilio_step_plan *out) {
  opilio_click(out, (opilio_click_options){.selector = self->next, .at_most = CAROUSELS_MAX});
  opilio_wait_for_network(out, PICTURES_WAIT_MAX);
  opilio_evaluate(out, opilio_text_of(count_requests));
  remember(out, now);
}

static void step(const void *plugin, opilio_page page, opilio_visit visit, opilio_bytes memory, opilio_step_plan *out) {
  const carousel_tour *self = plugin;
  (void)visit;
  if (opilio_page_step(page) == STEP_OF_COUNT) {
    opilio_count_elements(out, self->next);
    return;
  }
  const opilio_action_result *results;
  size_t length = opilio_page_results(page, &results);
  if (opilio_page_step(page) == STEP_OF_FIRST_CLICK) {
    uint64_t buttons = 0;
    if (!opilio_page_count(page, self->next, &buttons)) {
      opilio_log(OPILIO_WARN, "invalid CSS selector: %.*s", (int)self->next.len, self->next.ptr);
    }
    if (buttons == 0) {
      opilio_finish_page(out);
      return;
    }
    opilio_evaluate(out, opilio_text_of(raise_limit));
    turn(self, (tour){0}, out);
    return;
  }
  // The last three results are those of `turn`: the click, the wait, the number of requests.
  if (length < 3) opilio_fail("expected at least 3 action results, found %zu", length);
  tour now = parse_memory(memory);
  bool clicked = results[length - 3].kind == OPILIO_RESULT_CLICKED;
  uint32_t requests = number(results[length - 1]);
  now.clicks += clicked;
  now.idle_clicks = requests > now.requests ? 0 : now.idle_clicks + 1;
  now.requests = requests > now.requests ? requests : now.requests;
  if (!clicked || now.clicks >= self->clicks_max || now.idle_clicks >= self->patience) {
    opilio_count("turns", now.clicks);
    opilio_finish_page(out);
    return;
  }
  turn(self, now, out);
}

static const opilio_plugin exported = {
    .name = "carousel-tour",
    .version = "0.1.0",
    .summary = "Shows all pictures of the carousels and slideshows of a page.",
    .settings_schema = settings_schema,
    .configure = configure,
    .media_types = (const char *const[]){"text/html", "application/xhtml+xml", NULL},
    .step = step,
};

OPILIO_EXPORT(&exported);
