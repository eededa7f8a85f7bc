// Pictures as text: SVG elements inside a page of HTML.
//
//   Svg picture(600, 100, "Two boxes");
//   picture.rect({0, 0, 20, 10}, "box");
//   page += picture.text();
#ifndef ORIEL_DRIVER_REPORT_SVG_H_
#define ORIEL_DRIVER_REPORT_SVG_H_

#include <string>
#include <vector>

namespace oriel::driver {

// For text and for attributes in quotes. Control characters become spaces.
std::string escapeMarkup(const std::string& text);

// Of a coordinate, with one digit behind the point: "12.5", "3".
std::string coordinate(double value);

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

enum class Anchor { kStart, kMiddle, kEnd };

// Sizes are units of the view box, about a pixel on a wide screen. `style` is a class of the page's
// style sheet.
class Svg {
 public:
  // What `title` says is read to who can't see the picture.
  Svg(double width, double height, const std::string& title);

  void rect(const Box& box, const std::string& style);
  void line(double x1, double y1, double x2, double y2, const std::string& style);
  void path(const std::string& data, const std::string& style);
  void circle(double x, double y, double radius, const std::string& style);
  void label(double x, double y, const std::string& text, Anchor anchor = Anchor::kStart,
             const std::string& style = "");

  std::string text() const;

 private:
  std::string text_;
};

// Values along an axis.
struct Axis {
  double least = 0, most = 1;  // values; above 0 if isLog
  double from = 0, to = 1;     // where these are
  bool isLog = false;

  double at(double value) const;
  // Round values in the range: multiples of 1, 2 or 5 times a power of ten, at most `count` + 1; on
  // a logarithmic axis, 1, 2 and 5 in each decade, fewer where these are too many.
  std::vector<double> ticks(int count) const;
};

// Of so many rows, which ones are drawn where `most` fit: evenly spread, with the first and the
// last.
std::vector<size_t> shownRows(size_t rows, size_t most);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_REPORT_SVG_H_
